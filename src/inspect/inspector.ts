/**
 * The inspector of this process: its observer and its server. Invariant: it is off until you start it, and a watched
 * run behaves like any other.
 */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { LogEntry } from '../../machines/vocabulary.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { portNumber } from '../transports/nodeHandler.ts';
import { checkOptionsOf, flag, object } from '../validation.ts';
import { Observed } from './observed.ts';
import { builtPage } from './pageFiles.ts';
import { RecordLog } from './recordLog.ts';
import { startServer } from './server.ts';

/** The options of `startInspector`. */
export interface InspectorOptions {
  /** The port of the page. Default: any free port. */
  port?: number;
  /** Opens the page in the browser. */
  open?: boolean;
  /** Allows the page to decide, cancel, resume and send. Without it the page is read-only. */
  control?: boolean;
}

/** A running inspector: a page on a port of this machine. */
export interface Inspector {
  /** The address of the page, with the token. */
  readonly url: string;
  /** The token that the address of the page contains. */
  readonly token: string;
  /**
   * Pass it as `inspect` to `createAgent` or to XState's `createActor`: it observes every conversation from its
   * beginning.
   */
  readonly observe: (event: unknown) => void;
  /** Observes a running conversation from now on. The returned function ends that. */
  attach(conversation: Conversation): () => void;
  /** Closes the page's server. Agents continue to run. */
  close(): Promise<void>;
}

const optionsValidator = object({ port: portNumber, open: flag, control: flag });
const STALL_MS = 10_000;

/** The inspector of the command line, which also shows stored logs. */
export interface LogInspector extends Inspector {
  /** The number of connected pages. */
  readonly pages: number;
  /** Shows a stored log under its file name. */
  show(name: string, entries: readonly LogEntry[], unread: readonly string[]): void;
}

/** Starts the inspector on the loopback interface. Rejects with ConfigurationError. */
export async function startInspector(options?: InspectorOptions): Promise<Inspector> {
  const { url, token, observe, attach, close } = await startLogInspector(options);
  return { url, token, observe, attach, close };
}

export async function startLogInspector(options: InspectorOptions = {}): Promise<LogInspector> {
  checkOptionsOf('startInspector', options, optionsValidator);
  const { port = 0, open = false, control = false } = options;
  const records = new RecordLog(Date.now);
  const observed = new Observed(records);
  const version = versionOfPackage();
  const files = builtPage();
  const server = await startServer({ port, control, version, records, observed, files, stallMs: STALL_MS });
  if (open) openInBrowser(server.url);
  return {
    url: server.url,
    token: server.token,
    observe: observed.observe,
    attach: (conversation) => observed.attach(conversation),
    get pages() {
      return server.pages;
    },
    show(name, entries, unread) {
      records.add({ type: 'conversation', conversation: name, of: 'file', ...(unread.length > 0 && { unread }) });
      for (const entry of entries) records.entry(name, entry);
    },
    async close() {
      observed.close();
      await server.close();
    },
  };
}

export function versionOfPackage(): string {
  for (const place of ['../../package.json', '../../../package.json']) {
    try {
      const { version } = JSON.parse(readFileSync(new URL(place, import.meta.url), 'utf8')) as { version?: unknown };
      if (typeof version === 'string') return version;
    } catch {
      // The folder has another depth in the build than in the sources, so the next one is tried.
    }
  }
  return '0.0.0';
}

/** A failure is ignored: the address is printed anyway. */
function openInBrowser(url: string): void {
  const [program, args] =
    process.platform === 'darwin'
      ? ['open', [url]]
      : process.platform === 'win32'
        ? ['rundll32', ['url.dll,FileProtocolHandler', url]]
        : ['xdg-open', [url]];
  const opener = spawn(program as string, args as string[], { stdio: 'ignore', detached: true });
  opener.on('error', () => {});
  opener.unref();
}
