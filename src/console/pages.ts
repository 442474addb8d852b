import type { Request } from 'express';
import type { PersonRole } from '../domain/access.ts';
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

/** A page of the console: its address, who may see it, and what makes it of what the API answers. */
type ConsolePage = {
  path: string;
  least: PersonRole;
  show: (options: ConsoleOptions, view: View, request: Request) => Shown | Promise<Shown>;
};

/** Every page that needs a session. What they do are routes of the API, to which their forms lead. */
export const PAGES: readonly ConsolePage[] = [
  { path: '/', least: 'viewer', show: showOverview },
  { path: '/attention', least: 'viewer', show: showMatters },
  { path: '/orders', least: 'viewer', show: showOrders },
  { path: '/orders/:reference', least: 'viewer', show: showOrderPage },
  { path: '/events/:id', least: 'viewer', show: showEventPage },
  { path: '/notices/:id', least: 'viewer', show: showNoticePage },
  { path: '/deliveries', least: 'viewer', show: showEvents },
  { path: '/deliveries/rejections', least: 'viewer', show: showRejections },
  { path: '/deliveries/stale', least: 'viewer', show: showStale },
  { path: '/bulk', least: 'viewer', show: showBulkRuns },
  { path: '/bulk/:id', least: 'viewer', show: showBulkRun },
  { path: '/shop', least: 'viewer', show: showShop },
  { path: '/service', least: 'viewer', show: showService },
  { path: '/service/readings', least: 'viewer', show: showReadings },
  { path: '/service/drift', least: 'viewer', show: showDrift },
  { path: '/audit', least: 'viewer', show: showAudit },
  { path: '/audit/verification', least: 'viewer', show: showVerification },
  { path: '/system', least: 'viewer', show: showSystem },
  { path: '/system/doctor', least: 'viewer', show: showDoctor },
  { path: '/system/people', least: 'viewer', show: showPeople },
  { path: '/help', least: 'viewer', show: showHelp },
];
