/**
 * A complete reply as the charts see it: its items for the log, and its calls, each looked at before any gate. Rule:
 * call ids are unique in a log, arguments are parsed here and nowhere else, and what cannot run says why.
 */
import type { AgentItem, Json, Knowledge, ModelValue, RoundCall, ToolCall, Usage } from '../../machines/index.ts';
import { definitionOf } from '../tools/define.ts';
import { type Preparation, type PreparedCall, parsedCall, roundCall, type Toolbox } from '../tools/prepare.ts';
import type { RawCall, RawReply } from './attempt.ts';
import type { Model, Prices } from './model.ts';

export interface ReplyOptions {
  model: Model;
  toolbox: Toolbox;
  known: Knowledge;
  /** Whether the tool was offered in the request that is answered. */
  offered(name: string): boolean;
  callsMax: number;
  pluginGates: boolean;
  ready(prepared: PreparedCall): void;
  diagnose(code: string, detail?: Json): void;
}

/** USD of one reply; null where a price is unknown. */
export function costOf(usage: Usage, prices: Prices | undefined): number | null {
  if (!prices) return null;
  const { inputTokens, outputTokens, cachedInputTokens, cacheWriteTokens } = usage;
  const fresh = Math.max(0, inputTokens - cachedInputTokens - cacheWriteTokens);
  const cached = cachedInputTokens * (prices.cachedInput ?? prices.input);
  const written = cacheWriteTokens * (prices.cacheWrite ?? prices.input);
  return (fresh * prices.input + cached + written + outputTokens * prices.output) / 1_000_000;
}

/** An id that no other call of this log has. */
function freshId(wanted: string, taken: (callId: string) => boolean): string {
  const base = wanted === '' ? 'call' : wanted;
  if (wanted !== '' && !taken(wanted)) return wanted;
  let count = wanted === '' ? 1 : 2;
  while (taken(`${base}_${count}`)) count += 1;
  return `${base}_${count}`;
}

const refused = (code: string, text: string): Preparation => ({ kind: 'refused', code, text });

async function prepare(options: ReplyOptions, raw: RawCall, call: ToolCall, position: number, cut: boolean) {
  const { toolbox, offered, callsMax } = options;
  const incomplete = call.argsText !== undefined || raw.args.trim() === '';
  if (cut && incomplete) {
    return refused('truncated', 'The reply was cut off by its length limit inside this call. It was not run.');
  }
  if (position >= callsMax) return refused('too_many_calls', `Only ${callsMax} calls a reply are run.`);
  if (toolbox.find(call.name) && !offered(call.name)) {
    return refused('out_of_scope', `${call.name} is not offered in this request. It was not run.`);
  }
  try {
    return await toolbox.prepare(call);
  } catch (error) {
    return refused('invalid_arguments', `The arguments could not be checked: ${String(error)}`);
  }
}

export async function replyValue(raw: RawReply, options: ReplyOptions): Promise<ModelValue> {
  const { model, toolbox, known, pluginGates, ready, diagnose } = options;
  const items: AgentItem[] = [];
  const calls: RoundCall[] = [];
  const ids = new Set<string>();
  let empty = true;
  for (const item of raw.items) {
    if (item.type !== 'call') {
      if (item.type === 'assistant' && item.text.trim() !== '') empty = false;
      items.push(item as AgentItem);
      continue;
    }
    empty = false;
    const callId = freshId(item.call.callId, (id) => ids.has(id) || known.calls.has(id));
    if (callId !== item.call.callId) diagnose('id_duplicate', { given: item.call.callId, used: callId });
    ids.add(callId);
    const { name, args, extra } = item.call;
    const call = parsedCall(callId, name, args, extra);
    const preparation = await prepare(options, item.call, call, calls.length, raw.finish === 'length');
    if (preparation.kind === 'ready') ready(preparation.prepared);
    const tool = toolbox.find(name);
    const group = tool && definitionOf(tool)?.group;
    items.push({ type: 'tool-call', ...call, ...(group && { group }) });
    calls.push(roundCall(call, preparation, pluginGates));
  }
  const { finish, usage } = raw;
  const costUsd = costOf(usage, model.prices);
  return { kind: 'reply', items, calls, finish, empty, usage, costUsd, model: model.id };
}
