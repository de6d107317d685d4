/** The calls between the objects of a service, and the names of their state. */
import type * as Restate from '@restatedev/restate-sdk';
import type { LogEntry } from '../../machines/internal.ts';
import type { ContentStore } from './contentStore.ts';

export type Sdk = typeof Restate;

/** The names of the objects of one service. */
export const objectNames = (service: string) => ({
  conversation: service,
  inbox: `${service}Inbox`,
  index: `${service}Index`,
});
export type ObjectNames = ReturnType<typeof objectNames>;

/** The number of objects over which the index is spread. */
export const INDEX_SHARDS = 16;
export function shardOf(id: string): string {
  let hash = 0;
  for (const character of id) hash = (Math.imul(hash, 31) + (character.codePointAt(0) ?? 0)) | 0;
  return String(Math.abs(hash) % INDEX_SHARDS);
}

/** The most entries of one answer. */
export const READ_MAX = 500;

/** The keys of the state of a conversation: the number of its entries, and the version of the charts that wrote the last one. */
export const LENGTH = 'length';
export const VERSION = 'version';
/** The number of pages of a run that is continued, and its version. */
export const CARRIED = 'carried';
/** An entry. */
export const entryKey = (seq: number): string => `e/${seq}`;
/** A sub-agent of the conversation. */
const SUB_AGENT = 's/';
export const subAgentKey = (id: string): string => `${SUB_AGENT}${id}`;
export const subAgentsIn = (keys: readonly string[]): string[] =>
  keys.flatMap((key) => (key.startsWith(SUB_AGENT) ? [key.slice(SUB_AGENT.length)] : []));

/** The entries as the state has them: large ones are in the blob store. */
export async function storedEntries(
  ctx: Pick<Restate.ObjectSharedContext, 'get'>,
  from: number,
  upTo: number,
): Promise<unknown[]> {
  const asked = Array.from({ length: Math.max(0, upTo - from) }, (_, index) =>
    ctx.get<unknown>(entryKey(from + index)),
  );
  const entries: unknown[] = [];
  for (const get of asked) {
    const entry = await get;
    if (entry) entries.push(entry);
  }
  return entries;
}

export const wholeEntries = (contents: ContentStore, entries: readonly unknown[]): Promise<LogEntry[]> =>
  Promise.all(entries.map((entry) => contents.whole<LogEntry>(entry)));

/** Something in an inbox, as the engine keeps it: the act of a client, or what another conversation of the family sent. */
export type KeptAct =
  | { readonly act: unknown; readonly to: string }
  | { readonly sent: unknown; readonly isNews: boolean };

type Caller = Pick<Restate.ObjectContext, 'genericCall' | 'genericSend'>;

/** A request from one object to another. */
interface ObjectRequest {
  service: string;
  key: string;
  method: string;
  parameter: object;
  /** The milliseconds until it is sent. */
  delay?: number;
}

/** Its type has an optional field that may also be undefined. */
const jsonOf = <T>({ serde }: Sdk): Restate.Serde<T> => serde.json as Restate.Serde<T>;

export const callObject = <T>(sdk: Sdk, ctx: Caller, request: ObjectRequest): Promise<T> =>
  ctx.genericCall<object, T>({ ...request, inputSerde: jsonOf(sdk), outputSerde: jsonOf(sdk) });

export const sendToObject = (sdk: Sdk, ctx: Caller, request: ObjectRequest): void =>
  void ctx.genericSend<object>({ ...request, inputSerde: jsonOf(sdk) });
