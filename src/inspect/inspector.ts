/**
 * An inspector of this process: what it observes, and its server. Rule: off unless somebody starts it; a run that is
 * watched does the same as one that is not.
 */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { LogEntry } from '../../machines/vocabulary.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { ConfigurationError } from '../errors.ts';
import { checkOptionsOf, flag, object, whole } from '../validation.ts';
import { Observed } from './observed.ts';
import { builtPage } from './pageFiles.ts';
import { RecordLog } from './recordLog.ts';
import { startServer } from './server.ts';

export interface InspectorOptions {
  /** Any that is free, unless given. */
  port?: number;
  /** Opens the page in the browser. */
  open?: boolean;
  /** Lets the page decide, cancel, resume and send. Without it the page can only look. */
  control?: boolean;
}

export interface Inspector {
  /** The page, with the token. */
  readonly url: string;
  readonly token: string;
  /** As `inspect` of `createAgent` or of XState's `createActor`: every conversation, from its beginning. */
  readonly observe: (event: unknown) => void;
  /** A living conversation, at any time; what it answers ends it. */
  attach(conversation: Conversation): () => void;
  close(): Promise<void>;
}

const optionsValidator = object({ port: whole(0), open: flag, control: flag });
const STALL_MS = 10_000;

/** The inspector of the command line, which shows stored logs too. */
export interface LogInspector extends Inspector {
  /** How many pages watch. */
  readonly pages: number;
  /** Shows a stored log, by the name of its file. */
  show(name: string, entries: readonly LogEntry[], unread: readonly string[]): void;
}

/** Starts the inspector on this machine's loopback. Rejects with ConfigurationError. */
export async function startInspector(options?: InspectorOptions): Promise<Inspector> {
  const { url, token, observe, attach, close } = await startLogInspector(options);
  return { url, token, observe, attach, close };
}

export async function startLogInspector(options: InspectorOptions = {}): Promise<LogInspector> {
  checkOptionsOf('startInspector', options, optionsValidator);
  const { port = 0, open = false, control = false } = options;
  if (port > 65_535) throw new ConfigurationError(`expected a port from 0 to 65535, got ${port}`);
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

function versionOfPackage(): string {
  for (const place of ['../../package.json', '../../../package.json']) {
    try {
      const { version } = JSON.parse(readFileSync(new URL(place, import.meta.url), 'utf8')) as { version?: unknown };
      if (typeof version === 'string') return version;
    } catch {
      // The sources and what is built from them stand at different depths.
    }
  }
  return '0.0.0';
}

/** Where there is no browser, the address was told all the same. */
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
