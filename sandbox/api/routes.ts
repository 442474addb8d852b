import { Router } from 'express';
import type { Parts } from '../sandbox.ts';

export function apiRoutes(_parts: Parts): Router {
  return Router();
}
