/**
 * The built files of the inspector's page. Invariant: all files are found before the server starts. A request only
 * looks up a name, so no path of a request reaches the disk.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface PageFile {
  readonly mediaType: string;
  readonly bytes: Uint8Array;
}

/** The key is the path of a request: `/index.html`, `/assets/page.js`. */
export type PageFiles = ReadonlyMap<string, PageFile>;

export const isDocument = (path: string): boolean => path === '/' || path === '/index.html';
/** The file for the path of a request. */
export const fileAt = (files: PageFiles, path: string): PageFile | undefined =>
  files.get(isDocument(path) ? '/index.html' : path);

/**
 * The headers of every file: the page loads its own files only, and it may not be framed. `sources`: the places that the page connects
 * to.
 */
export const fileHeaders = (sources: string): Record<string, string> => ({
  'content-security-policy': [
    "default-src 'self'",
    `connect-src ${sources}`,
    "img-src 'self' data: blob:",
    "worker-src 'self' blob:",
    "object-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
});

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
  '.woff2': 'font/woff2',
  '.txt': 'text/plain; charset=utf-8',
  '.map': 'application/json',
};

const MISSING = `<!doctype html><meta charset="utf-8"><title>runchart</title>
<p>The page of the inspector is not built: run <code>npm run build</code>.`;

/** The folder in the installed package, and in a checkout with a build. */
const FOLDERS = ['../../inspect/page/', '../../dist/inspect/page/'];

function filesIn(folder: string): Map<string, PageFile> {
  const files = new Map<string, PageFile>();
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const mediaType = MEDIA_TYPES[extname(entry.name)];
    if (!entry.isFile() || mediaType === undefined) continue;
    const path = join(entry.parentPath, entry.name);
    const name = `/${relative(folder, path).split(sep).join('/')}`;
    files.set(name, { mediaType, bytes: readFileSync(path) });
  }
  return files;
}

export function builtPage(): PageFiles {
  for (const place of FOLDERS) {
    try {
      const files = filesIn(fileURLToPath(new URL(place, import.meta.url)));
      if (files.has('/index.html')) return files;
    } catch {
      // If this folder is missing, the next one is tried.
    }
  }
  return new Map([['/index.html', { mediaType: 'text/html; charset=utf-8', bytes: Buffer.from(MISSING) }]]);
}
