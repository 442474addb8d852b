import { closeSync, ftruncateSync, mkdirSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Chance } from './harness/chance.ts';
import type { Operation } from './recording.ts';

/**
 * A disk after a power failure. The model promises only what POSIX does, which is less than any journaling file system:
 *
 * - A write to a file, and the file's length, are durable after a later fsync or fdatasync of that file.
 * - A name that was created, renamed, linked or removed is durable after a later fsync of its folder. Syncing the file
 *   does not make its name durable. A rename is atomic.
 * - Everything else may be lost, in each file and folder independently: all of it, all but the first part, or any
 *   selection of the calls or of the 512-byte sectors that they wrote. A sector is written whole or not at all, and a
 *   write does not change the bytes beside it (SQLite calls this power-safe overwrite).
 * - Bytes before a file's end that were never written read as zeros.
 */
export type Disk = {
  /** Applies the next call of a recording. */
  take(operation: Operation): void;
  /** Writes the disk into an empty folder: as a power failure now would leave it, or with everything that was done. */
  writeTo(folder: string, fate: Chance | 'everything'): Loss;
};

/** How many changes were not durable, and how many of them, or of their parts, were lost. */
type Loss = { unsure: number; lost: number };

const SECTOR_BYTES = 512;

type Change = { at: number; bytes: Buffer } | { length: number };
type File = { durable: Buffer; length: number; pending: Change[] };
type Renaming = { removed: string | null; added: string | null; node: Node };
type Folder = { durable: Map<string, Node>; now: Map<string, Node>; pending: Renaming[] };
type Node = File | Folder;

/** @param base a folder whose content was durable before the recording; null for an empty disk */
export function openDisk(base: string | null): Disk {
  const root = base === null ? newFolder() : (readNode(base) as Folder);
  const open = new Map<number, Node>();

  function nodeAt(path: string): Node {
    let node: Node = root;
    for (const name of path.split('/').filter((part) => part !== '')) {
      const next: Node | undefined = isFolder(node) ? node.now.get(name) : undefined;
      if (next === undefined) throw new Error(`the recording speaks of ${path}, which it never made`);
      node = next;
    }
    return node;
  }

  function rename(path: string, { removed, added, node }: Renaming): void {
    const folder = nodeAt(dirname(path)) as Folder;
    const renaming = { removed, added, node };
    folder.pending.push(renaming);
    applyRenaming(folder.now, renaming);
  }

  function add(path: string, node: Node): void {
    rename(path, { removed: null, added: basename(path), node });
  }

  return {
    take: (operation) => {
      switch (operation.do) {
        case 'open': {
          if (operation.created) add(operation.path, newFile());
          const node = nodeAt(operation.path);
          if (operation.emptied && !isFolder(node)) node.pending.push({ length: 0 });
          open.set(operation.file, node);
          return;
        }
        case 'close':
          open.delete(operation.file);
          return;
        case 'write':
        case 'truncate': {
          const { pending } = open.get(operation.file) as File;
          pending.push(operation.do === 'write' ? operation : { length: operation.length });
          return;
        }
        case 'sync':
          sync(open.get(operation.file) as Node);
          return;
        case 'mkdir':
          add(operation.path, newFolder());
          return;
        case 'link':
          add(operation.to, nodeAt(operation.path));
          return;
        case 'unlink': {
          const { path } = operation;
          rename(path, { removed: basename(path), added: null, node: nodeAt(path) });
          return;
        }
        case 'rename': {
          const { path, to } = operation;
          if (dirname(path) !== dirname(to)) throw new Error(`${path} was moved to another folder`);
          rename(path, { removed: basename(path), added: basename(to), node: nodeAt(path) });
          return;
        }
        case 'mark':
          // The files of a process that ended are closed.
          if (operation.mark.mark === 'session') open.clear();
      }
    },
    writeTo: (folder, fate) => {
      const loss = { unsure: 0, lost: 0 };
      writeFolder(root, folder, fate, loss);
      return loss;
    },
  };
}

function newFile(): File {
  return { durable: Buffer.alloc(0), length: 0, pending: [] };
}

function newFolder(): Folder {
  return { durable: new Map(), now: new Map(), pending: [] };
}

function isFolder(node: Node): node is Folder {
  return 'now' in node;
}

function readNode(folder: string): Folder {
  const entries = readdirSync(folder, { withFileTypes: true }).map((entry): [string, Node] => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return [entry.name, readNode(path)];
    const durable = readFileSync(path);
    return [entry.name, { durable, length: durable.length, pending: [] }];
  });
  return { durable: new Map(entries), now: new Map(entries), pending: [] };
}

function applyRenaming(names: Map<string, Node>, { removed, added, node }: Renaming): void {
  if (removed !== null && names.get(removed) === node) names.delete(removed);
  if (added !== null) names.set(added, node);
}

function sync(node: Node): void {
  if (isFolder(node)) {
    node.durable = new Map(node.now);
  } else {
    for (const change of node.pending) applyToDurable(node, change);
  }
  node.pending = [];
}

function applyToDurable(file: File, change: Change): void {
  const end = 'length' in change ? change.length : Math.max(file.length, change.at + change.bytes.length);
  if (end > file.durable.length) {
    const larger = Buffer.alloc(Math.max(end, 2 * file.durable.length));
    file.durable.copy(larger, 0, 0, file.length);
    file.durable = larger;
  }
  if ('bytes' in change) change.bytes.copy(file.durable, change.at);
  else if (end < file.length) file.durable.fill(0, end, file.length);
  file.length = end;
}

function writeFolder(folder: Folder, path: string, fate: Chance | 'everything', loss: Loss): void {
  const names = new Map(folder.durable);
  const survivors = fate === 'everything' ? folder.pending : survivorsOf(folder.pending, fate);
  for (const renaming of survivors) applyRenaming(names, renaming);
  loss.unsure += folder.pending.length;
  loss.lost += folder.pending.length - survivors.length;
  for (const [name, node] of names) {
    // SQLite rebuilds the index of its log if no process has the database open.
    if (name.endsWith('-shm')) continue;
    if (isFolder(node)) {
      mkdirSync(join(path, name));
      writeFolder(node, join(path, name), fate, loss);
    } else writeFile(node, join(path, name), fate, loss);
  }
}

function writeFile({ durable, length, pending }: File, path: string, fate: Chance | 'everything', loss: Loss): void {
  const pieces = fate !== 'everything' && fate.oneIn(4) ? pending.flatMap(sectorsOf) : pending;
  const survivors = fate === 'everything' ? pending : survivorsOf(pieces, fate);
  loss.unsure += pieces.length;
  loss.lost += pieces.length - survivors.length;
  const file = openSync(path, 'w', 0o600);
  try {
    if (length > 0) writeSync(file, durable, 0, length, 0);
    for (const change of survivors) {
      if ('bytes' in change) writeSync(file, change.bytes, 0, change.bytes.length, change.at);
      else ftruncateSync(file, change.length);
    }
  } finally {
    closeSync(file);
  }
}

/** None, the first ones, or any selection, from few to nearly all. */
function survivorsOf<T>(changes: readonly T[], chance: Chance): readonly T[] {
  const fate = chance.pick(['none', 'prefix', 'selection'] as const);
  if (fate === 'none') return [];
  if (fate === 'prefix') return changes.slice(0, chance.between(0, changes.length));
  const inTen = chance.between(1, 9);
  return changes.filter(() => chance.below(10) < inTen);
}

/** A write as one change for each sector of the file that it touches. */
function sectorsOf(change: Change): Change[] {
  if (!('bytes' in change)) return [change];
  const { at, bytes } = change;
  const sectors: Change[] = [];
  for (let from = at; from < at + bytes.length; ) {
    const to = Math.min(at + bytes.length, (Math.floor(from / SECTOR_BYTES) + 1) * SECTOR_BYTES);
    sectors.push({ at: from, bytes: bytes.subarray(from - at, to - at) });
    from = to;
  }
  return sectors;
}
