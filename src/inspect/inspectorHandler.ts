/**
 * The inspector in a server of your own, as one function from Request to Response: the page, a stream of events for each
 * open page, and its requests. Invariant: a request of another site is refused before anything else. All but the public
 * files of the page is authorized. An agent is observed only while a page is open, and for a minute after that.
 */
import { type Agent, openingsOf, watchersOf } from '../agent.ts';
import { ConfigurationError, RunchartError } from '../errors.ts';
import {
  type Authorize,
  authorizedCaller,
  type Caller,
  jsonBody,
  mustHaveMethod,
  notFound,
  refusal,
} from '../transports/httpRequests.ts';
import { callback, checkOptionsOf, flag, object, text } from '../validation.ts';
import { versionOfPackage } from './inspector.ts';
import { Observed } from './observed.ts';
import { PageConnection } from './page.ts';
import { builtPage, fileAt, fileHeaders, isDocument, type PageFiles } from './pageFiles.ts';
import { RecordLog } from './recordLog.ts';
import { REQUEST_MAX } from './wire.ts';

/** The options of `inspectorHandler`. */
export interface InspectorHandlerOptions {
  /**
   * Answers true or the name of the caller, which becomes `by` in decisions and messages. False, an empty name or an error
   * refuses the request.
   */
  authorize(request: Request): boolean | string | Promise<boolean | string>;
  /** The path of the page, such as `/inspector`. Default: the root. */
  basePath?: string;
  /** Allows pages to decide, cancel, resume and send. Without it they are read-only. */
  control?: boolean;
}

const optionsValidator = object({
  authorize: callback,
  basePath: {
    expected: 'a path such as /inspector',
    test: (value) => text.test(value) && /^(\/[^/?#]+)*$/.test(`${value}`),
  },
  control: flag,
});

/** The most pages that are open at once. */
const PAGES_MAX = 64;
const BEAT_MS = 15_000;
const STALL_MS = 10_000;
/** A page that connects again within this time misses no transition. */
const GRACE_MS = 60_000;

/**
 * Makes a handler of requests that serves the inspector's page for an agent. Throws ConfigurationError for an invalid
 * option.
 */
export function inspectorHandler(
  agent: Agent,
  options: InspectorHandlerOptions,
): (request: Request) => Promise<Response> {
  return inspectorHandlerOf(agent, options, { files: builtPage, graceMs: GRACE_MS });
}

/** The parts that tests replace. */
interface Served {
  files(): PageFiles;
  graceMs: number;
}

export function inspectorHandlerOf(
  agent: Agent,
  options: InspectorHandlerOptions,
  served: Served,
): (request: Request) => Promise<Response> {
  checkOptionsOf('inspectorHandler', options, optionsValidator);
  if (options.authorize === undefined)
    throw new ConfigurationError('inspectorHandler needs authorize, which says who may look');
  const handler = new InspectorHandler(agent, options, served);
  return (request) => handler.answer(request);
}

const forbidden = (message: string): RunchartError => new RunchartError('not_allowed', message);

/**
 * Browsers say where a request comes from. Older ones name only its origin, and only sometimes. `isPage`: a link on another
 * site may open it.
 */
function isOfOwnSite({ headers, url, method }: Request, isPage: boolean): boolean {
  const site = headers.get('sec-fetch-site');
  const isLink = isPage && method === 'GET' && headers.get('sec-fetch-mode') === 'navigate';
  if (site !== null) return site === 'same-origin' || site === 'none' || isLink;
  const origin = headers.get('origin');
  return origin === null || /^https?:\/\/(.*)$/.exec(origin)?.[1] === (headers.get('host') ?? new URL(url).host);
}

/**
 * Adds the address of the events to the page. The page keeps its text if its address lacks the last slash and a router removes the
 * path, because its script is not found then.
 */
function withConnection(files: PageFiles): PageFiles {
  const document = fileAt(files, '/');
  if (!document) return files;
  const html = new TextDecoder()
    .decode(document.bytes)
    .replace('<head>', '<head>\n    <meta name="runchart-connection" content="events">')
    .replace('<div id="page">', '<div id="page">If nothing more appears, add a slash to the address.');
  return new Map([...files, ['/index.html', { ...document, bytes: new TextEncoder().encode(html) }]]);
}

class InspectorHandler {
  readonly #agent: Agent;
  readonly #options: InspectorHandlerOptions;
  readonly #served: Served;
  /** As a request has it: with escapes. */
  readonly #basePath: string;
  #files: PageFiles | undefined;
  #observation: Observation | undefined;
  #isAgentClosed = false;

  constructor(agent: Agent, options: InspectorHandlerOptions, served: Served) {
    this.#agent = agent;
    this.#options = options;
    this.#served = served;
    const { basePath = '' } = options;
    this.#basePath = basePath === '' ? '' : new URL(basePath, 'http://localhost').pathname;
    // The agent may be closed while no page is open.
    watchersOf(agent).add({
      opened: () => undefined,
      closed: () => {
        this.#isAgentClosed = true;
      },
    });
  }

  async answer(request: Request): Promise<Response> {
    try {
      return await this.#answer(request);
    } catch (error) {
      return refusal(error);
    }
  }

  async #answer(request: Request): Promise<Response> {
    const basePath = this.#basePath;
    const { pathname, search, searchParams } = new URL(request.url);
    if (pathname !== basePath && !pathname.startsWith(`${basePath}/`)) throw notFound();
    const path = pathname.slice(basePath.length);
    if (!isOfOwnSite(request, path === '' || isDocument(path))) throw forbidden('the request comes from another site');
    if (path === '') return this.#redirect(request, `./${basePath.split('/').at(-1)}/${search}`);
    if (path === '/events') {
      mustHaveMethod(request, 'GET');
      await this.#caller(request);
      return this.#open();
    }
    if (path === '/requests') {
      mustHaveMethod(request, 'POST');
      return this.#receive(request, await this.#caller(request), searchParams.get('page') ?? '');
    }
    return this.#file(request, path);
  }

  /** The address is relative, because a proxy may have removed a part of the path. */
  #redirect(request: Request, location: string): Response {
    mustHaveMethod(request, 'GET', 'HEAD');
    return new Response(null, { status: 308, headers: { location, 'cache-control': 'no-store' } });
  }

  async #file(request: Request, path: string): Promise<Response> {
    this.#files ??= withConnection(this.#served.files());
    const file = fileAt(this.#files, path);
    if (isDocument(path)) await this.#caller(request);
    if (!file) throw notFound();
    mustHaveMethod(request, 'GET', 'HEAD');
    const headers = { ...fileHeaders("'self'"), 'content-type': file.mediaType };
    const length = { 'content-length': `${file.bytes.byteLength}` };
    return new Response(request.method === 'HEAD' ? null : (file.bytes as BodyInit), {
      headers: { ...headers, ...length },
    });
  }

  async #caller(request: Request): Promise<Caller> {
    const caller = await authorizedCaller(request, this.#options.authorize as Authorize);
    // The page shows every conversation.
    if (caller.owner !== undefined)
      throw forbidden('the inspector shows the conversations of all owners: authorize must answer true or a name');
    return caller;
  }

  #open(): Response {
    if (this.#isAgentClosed) throw new RunchartError('closed', 'the agent is closed');
    if (!this.#observation || this.#observation.isOver) {
      const { control = false } = this.#options;
      this.#observation = new Observation(this.#agent, { control, graceMs: this.#served.graceMs });
    }
    return this.#observation.open();
  }

  async #receive(request: Request, { by }: Caller, pageId: string): Promise<Response> {
    const page = this.#observation?.pages.get(pageId);
    if (!page) throw new RunchartError('not_found', 'the page is not connected');
    const body = await jsonBody(request, { bytesMax: REQUEST_MAX });
    page.receive(JSON.stringify(body), by);
    return new Response(null, { status: 204, headers: { 'cache-control': 'no-store' } });
  }
}

/** The agent as the open pages see it. */
class Observation {
  readonly pages = new Map<string, PageStream>();
  readonly #agent: Agent;
  readonly #options: { control: boolean; graceMs: number };
  readonly #records = new RecordLog(Date.now);
  readonly #observed = new Observed(this.#records);
  readonly #session = crypto.randomUUID();
  readonly #version = versionOfPackage();
  readonly #watcher = {
    opened: (conversation: Parameters<Observed['attach']>[0]) => void this.#observed.attach(conversation),
    closed: () => this.#end(),
  };
  #grace: ReturnType<typeof setTimeout> | undefined;
  isOver = false;

  constructor(agent: Agent, options: { control: boolean; graceMs: number }) {
    this.#agent = agent;
    this.#options = options;
    watchersOf(agent).add(this.#watcher);
    for (const opening of openingsOf(agent)) void opening.then(this.#watcher.opened, () => undefined);
  }

  open(): Response {
    if (this.pages.size >= PAGES_MAX) throw new RunchartError('limit', `at most ${PAGES_MAX} pages may be open`);
    clearTimeout(this.#grace);
    const id = crypto.randomUUID();
    const page = new PageStream(id, (channel) => {
      const shown = {
        records: this.#records,
        observed: this.#observed,
        session: this.#session,
        version: this.#version,
      };
      return new PageConnection(channel, {
        ...{ ...shown, control: this.#options.control, stallMs: STALL_MS, appContext: () => null },
        now: () => performance.now(),
        setTimer(ms, fire) {
          const timer = setTimeout(fire, ms);
          return () => clearTimeout(timer);
        },
      });
    });
    page.over = () => this.#left(id);
    this.pages.set(id, page);
    return page.response;
  }

  #left(id: string): void {
    this.pages.delete(id);
    if (this.pages.size > 0 || this.isOver) return;
    this.#grace = setTimeout(() => this.#end(), this.#options.graceMs);
    (this.#grace as { unref?(): void }).unref?.();
  }

  #end(): void {
    this.isOver = true;
    clearTimeout(this.#grace);
    watchersOf(this.#agent).delete(this.#watcher);
    this.#observed.close();
    for (const page of [...this.pages.values()]) page.end();
  }
}

const encoder = new TextEncoder();

/** The stream of events of one page. The first one contains the id under which the page sends its requests. */
class PageStream {
  readonly response: Response;
  readonly #connection: PageConnection;
  readonly #beat: ReturnType<typeof setInterval>;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  over = (): void => {};

  constructor(id: string, connect: (channel: ConstructorParameters<typeof PageConnection>[0]) => PageConnection) {
    const strategy = { highWaterMark: 0, size: ({ byteLength }: Uint8Array) => byteLength };
    const body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        cancel: () => this.#close(),
      },
      strategy as unknown as QueuingStrategy<Uint8Array>,
    );
    const headers = { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' };
    this.response = new Response(body, { headers: { ...headers, 'x-content-type-options': 'nosniff' } });
    const waiting = (): number => -(this.#controller?.desiredSize ?? 0);
    this.#connection = connect({
      send: (frame) => this.#write(`data: ${frame}\n\n`),
      get waiting() {
        return waiting();
      },
      drop: () => this.#drop(),
    });
    this.#write(`event: page\ndata: ${id}\n\n`);
    this.#beat = setInterval(() => waiting() === 0 && this.#write(': still connected\n\n'), BEAT_MS);
  }

  receive(text: string, by: string | undefined): void {
    this.#connection.receive(text, by);
  }

  end(): void {
    this.#controller?.close();
    this.#close();
  }

  #write(text: string): void {
    this.#controller?.enqueue(encoder.encode(text));
  }

  #drop(): void {
    this.#controller?.error(new Error('the page is too slow'));
    this.#close();
  }

  #close(): void {
    if (!this.#controller) return;
    this.#controller = undefined;
    clearInterval(this.#beat);
    this.#connection.close();
    this.over();
  }
}
