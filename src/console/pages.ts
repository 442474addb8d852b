import type { Request } from 'express';
import type { PersonRole } from '../domain/access.ts';
import { html } from '../http/app.ts';
import type { PageParts } from './layout.ts';
import type { ConsoleOptions, View } from './view.ts';

/** A page, with another status than 200 if the API refused what it was asked for; or the address to go to instead. */
export type Shown = (PageParts & { status?: number }) | { goTo: string };

/** A page of the console: its address, who may see it, and what makes it of what the API answers. */
type ConsolePage = {
  path: string;
  least: PersonRole;
  show: (options: ConsoleOptions, view: View, request: Request) => Shown | Promise<Shown>;
};

/** Every page that needs a session. What they do are routes of the API, to which their forms lead. */
export const PAGES: readonly ConsolePage[] = [
  { path: '/', least: 'viewer', show: () => ({ title: 'Overview', here: '/', body: html`<h1>Overview</h1>` }) },
];
