import type { Request } from 'express';
import { showAudit, showVerification } from './audit_page.ts';
import { showBulkRun, showBulkRuns } from './bulk_page.ts';
import { showEvents, showRejections, showStale } from './deliveries.ts';
import { showHelp } from './help.ts';
import type { Shown } from './layout.ts';
import { showMatters } from './matters.ts';
import { showOrderPage } from './order.ts';
import { showOrders } from './order_list.ts';
import { showOverview } from './overview.ts';
import { showEventPage, showNoticePage } from './rows.ts';
import { showDrift, showReadings, showService } from './service.ts';
import { showShop } from './shop.ts';
import { showDoctor, showPeople, showSystem } from './system.ts';
import type { ConsoleOptions, View } from './view.ts';

/** What makes a page of the console of what the API answers. */
type ShowPage = (options: ConsoleOptions, view: View, request: Request) => Shown | Promise<Shown>;

/** Every page that needs a session, by its address. What they do are routes of the API, to which their forms lead. */
export const PAGES: Readonly<Record<string, ShowPage>> = {
  '/': showOverview,
  '/attention': showMatters,
  '/orders': showOrders,
  '/orders/:reference': showOrderPage,
  '/events/:id': showEventPage,
  '/notices/:id': showNoticePage,
  '/deliveries': showEvents,
  '/deliveries/rejections': showRejections,
  '/deliveries/stale': showStale,
  '/bulk': showBulkRuns,
  '/bulk/:id': showBulkRun,
  '/shop': showShop,
  '/service': showService,
  '/service/readings': showReadings,
  '/service/drift': showDrift,
  '/audit': showAudit,
  '/audit/verification': showVerification,
  '/system': showSystem,
  '/system/doctor': showDoctor,
  '/system/people': showPeople,
  '/help': showHelp,
};
