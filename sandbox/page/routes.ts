import { Router } from 'express';
import type { Parts } from '../sandbox.ts';

export function pageRoutes(_parts: Parts): Router {
  return Router();
}
