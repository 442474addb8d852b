#!/usr/bin/env node
// The health check of the image: asks the private listener, at the address in the environment, if settled is ready.
// The public listener may have no connection left, and does not say why settled is not ready.
import { readFileSync } from 'node:fs';

/** Where to connect to a listener of this address: a server may listen on every one, but a client connects to one. */
function readyUrl({ SETTLED_OPERATOR_LISTEN: given, SETTLED_OPERATOR_LISTEN_FILE: file }) {
  const address = given || (file ? readFileSync(file, 'utf8').trim() : '') || '127.0.0.1:8788';
  const reachable = address.replace(/^0\.0\.0\.0:/, '127.0.0.1:').replace(/^\[::\]:/, '[::1]:');
  return `http://${reachable}/readyz`;
}

if (import.meta.main ?? process.argv[1] === import.meta.filename) {
  const url = readyUrl(process.env);
  try {
    const answer = await fetch(url);
    const { reason } = await answer.json();
    if (!answer.ok) process.stderr.write(`not ready: ${reason}\n`);
    process.exitCode = answer.ok ? 0 : 1;
  } catch (error) {
    process.stderr.write(`${url} does not answer: ${error.cause?.message ?? error.message}\n`);
    process.exitCode = 1;
  }
}
