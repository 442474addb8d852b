// The console's script. Every page works without it: it keeps the page fresh, and brings keys.

import { Idiomorph } from './idiomorph.js';

void Idiomorph;
