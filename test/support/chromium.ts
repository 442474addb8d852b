import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium } from 'playwright-core';

const CACHE = fileURLToPath(new URL('../../node_modules/.cache', import.meta.url));

/** Starts the Chromium that `CHROMIUM` names, or that of the development dependencies. */
export async function launchChromium(): Promise<Browser> {
  try {
    const executablePath = process.env.CHROMIUM ?? (await unpacked());
    return await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
  } catch (cause) {
    const message =
      'No browser could be started, so the hosted page was not tested. Name a Chromium in CHROMIUM=, or see the cause.';
    throw new Error(message, { cause });
  }
}

/**
 * The Chromium of the development dependencies, unpacked once. Its package takes any existing file for a complete one,
 * so this unpacks it aside and moves it into place: two test processes may start at the same time.
 */
async function unpacked(): Promise<string> {
  // The package reads this when it is loaded. Without it, it leaves out the libraries that it needs.
  process.env.AWS_EXECUTION_ENV ??= 'AWS_Lambda_nodejs22.x';
  const { default: sparticuz } = await import('@sparticuz/chromium');
  const folder = join(CACHE, `chromium-${process.arch}`);
  if (!existsSync(folder)) {
    mkdirSync(CACHE, { recursive: true });
    const aside = mkdtempSync(`${folder}-`);
    await withTemporaryFolder(aside, () => sparticuz.executablePath());
    writeFileSync(join(aside, 'fonts.conf'), fontsOf(folder));
    try {
      renameSync(aside, folder);
    } catch {
      // Another process was first.
      rmSync(aside, { recursive: true, force: true });
    }
  }
  process.env.LD_LIBRARY_PATH = join(folder, 'al2023', 'lib');
  process.env.FONTCONFIG_FILE = join(folder, 'fonts.conf');
  return join(folder, 'chromium');
}

/** The package's own file names the temporary folder. A browser without fonts crashes. */
function fontsOf(folder: string): string {
  return `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>${join(folder, 'fonts')}</dir><cachedir>${join(folder, 'fonts-cache')}</cachedir></fontconfig>\n`;
}

async function withTemporaryFolder<T>(folder: string, work: () => Promise<T>): Promise<T> {
  const before = process.env.TMPDIR;
  process.env.TMPDIR = folder;
  try {
    return await work();
  } finally {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  }
}
