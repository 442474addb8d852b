import type { Request } from 'express';
import type { PersonRole } from '../domain/access.ts';
import { html } from '../http/app.ts';
import type { PageParts } from './layout.ts';
import type { ConsoleOptions, View } from './view.ts';

/** A page of the console: its address, who may see it, and what makes it of what the API answers. */
export type ConsolePage = {
  path: string;
  least: PersonRole;
  show: (options: ConsoleOptions, view: View, request: Request) => PageParts | Promise<PageParts>;
};

/** Every page that needs a session. What they do are routes of the API, to which their forms lead. */
export const PAGES: readonly ConsolePage[] = [
  { path: '/', least: 'viewer', show: () => ({ title: 'Overview', here: '/', body: html`<h1>Overview</h1>` }) },
];
