import { Router } from 'express';
import type { Parts } from '../sandbox.ts';

export function controlRoutes(_parts: Parts): Router {
  return Router();
}
