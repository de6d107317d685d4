/**
 * The paths of a chat: its requests, its history, its running reply, its stop. Rule: without a base path the last segments
 * count, so that a handler can be put at any place of an app.
 */
import { basePathOf, mustHaveMethod, notFound } from '../httpRequests.ts';

export type ChatPath = { kind: 'chat' } | { kind: 'history' | 'stream' | 'stop'; id: string };

const ACTS: ReadonlyMap<string, { method: string; kind: 'stream' | 'stop' }> = new Map([
  ['stream', { method: 'GET', kind: 'stream' }],
  ['stop', { method: 'POST', kind: 'stop' }],
]);

function segmentsOf(path: string): string[] {
  try {
    return path.split('/').slice(1).map(decodeURIComponent);
  } catch {
    throw notFound();
  }
}

/** The segments after the base path. */
function ownSegments(pathname: string, basePath: string): string[] {
  const base = basePathOf(basePath);
  const rest = pathname.slice(base.length);
  if (!pathname.startsWith(base) || !/^(\/|$)/.test(rest)) throw notFound();
  return rest === '/' ? [] : segmentsOf(rest);
}

/** The last segments, as far as they belong to a path of a chat with this method. */
function lastSegments(pathname: string, method: string): string[] {
  const segments = segmentsOf(pathname.replace(/\/+$/, ''));
  const act = ACTS.get(segments.at(-1) ?? '');
  if (act?.method === method && segments.length > 1) return segments.slice(-2);
  return method === 'GET' ? segments.slice(-1) : [];
}

/** Throws RunchartError, code not_found or method. */
export function chatPath(request: Request, basePath: string | undefined, hasHistory: boolean): ChatPath {
  const { pathname } = new URL(request.url);
  const { method } = request;
  const isRead = method === 'GET' && hasHistory;
  const segments =
    basePath === undefined ? lastSegments(pathname, isRead ? 'GET' : 'POST') : ownSegments(pathname, basePath);
  const [id, word, ...rest] = segments;
  if (id === undefined) {
    mustHaveMethod(request, 'POST');
    return { kind: 'chat' };
  }
  if (id === '' || rest.length > 0) throw notFound();
  const act = word === undefined ? { method: 'GET', kind: 'history' as const } : ACTS.get(word);
  if (!act || (act.method === 'GET' && !hasHistory)) throw notFound();
  mustHaveMethod(request, act.method);
  return { kind: act.kind, id };
}
