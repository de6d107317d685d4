/**
 * The executor of tool calls. Rule: whatever a tool does, the answer is one value: a result, an error or a suspension;
 * a tool that does not settle in time is left behind, and what it says later counts for nothing.
 */
import { hash, type Json, type StoredPart, type ToolValue } from '../../machines/index.ts';
import { toJson } from '../json.ts';
import { answerOf, partsOf, type ToolAnswer, type ToolContext } from './define.ts';
import type { PreparedCall } from './prepare.ts';

export interface ToolLimits {
  timeoutMs: number;
  resultBytes: number;
}
type Timer = (ms: number, fire: () => void) => () => void;

const text = (words: string): StoredPart[] => [{ type: 'text', text: words }];
export const erred = (code: string, words: string): ToolValue => ({
  kind: 'erred',
  code,
  content: text(words),
  print: hash(`${code} ${words}`),
});

const bytes = new TextEncoder();

/** Keeps the head and the tail of a text that is too long. */
function cut(words: string, most: number): string {
  if (words.length * 3 <= most || bytes.encode(words).length <= most) return words;
  const half = Math.max(0, Math.floor(most / 8));
  const left = words.length - 2 * half;
  return `${words.slice(0, half)}\n[${left} characters left out]\n${words.slice(words.length - half)}`;
}

function contentOf(value: unknown, most: number): StoredPart[] | { why: string } {
  if (value === undefined) return text('(no output)');
  if (typeof value === 'string') return text(cut(value, most));
  const parts = partsOf(value);
  if (parts) return parts.map((part) => (part.type === 'text' ? { ...part, text: cut(part.text, most) } : part));
  const json = toJson(value);
  return json.kind === 'parsed' ? text(cut(JSON.stringify(json.value), most)) : { why: json.why };
}

const printOfContent = (content: readonly StoredPart[]): string =>
  hash(content.map((part) => (part.type === 'text' ? part.text : part.data)).join('\n'));

function valueFrom(answer: ToolAnswer, most: number): ToolValue {
  if (answer.status === 'pending') {
    const { reason, payload } = answer.suspend;
    const json = payload === undefined ? undefined : toJson(payload);
    if (json?.kind === 'refused') return erred('not_json', `the payload of the suspension is no JSON: ${json.why}`);
    return { kind: 'pending', reason, ...(json && { payload: json.value }) };
  }
  const content = contentOf(answer.content, most);
  if (!Array.isArray(content)) return erred('not_json', `the tool's result is no JSON: ${content.why}`);
  const print = printOfContent(content);
  if (answer.status === 'error') return { kind: 'erred', code: answer.code ?? 'error', content, print };
  if (!answer.state) return { kind: 'succeeded', content, print };
  const state = toJson(answer.state);
  if (state.kind === 'refused') return erred('not_json', `the state the tool writes is no JSON: ${state.why}`);
  return { kind: 'succeeded', content, print, writes: state.value as { [key: string]: Json } };
}

/** What a thrown value tells the model. */
export function thrownText(error: unknown): string {
  try {
    return error instanceof Error ? `${error.name}: ${error.message}` : `Error: ${String(error)}`;
  } catch {
    return 'Error: the tool threw a value that cannot be shown';
  }
}

/** Runs one prepared call. `abort` is aborted when its time is up; `late` hears of a result after that. */
export function executeTool(
  { definition, args }: PreparedCall,
  context: ToolContext,
  abort: AbortController,
  limits: ToolLimits,
  setTimer: Timer,
  late: () => void,
): Promise<ToolValue> {
  return new Promise((resolve) => {
    let settled = false;
    const { timeoutMs, resultBytes } = limits;
    const stop = setTimer(timeoutMs, () => {
      settled = true;
      resolve(
        erred('timeout', `${definition.name} did not finish within ${timeoutMs} ms. It may still have an effect.`),
      );
      abort.abort(new DOMException('the tool call timed out', 'TimeoutError'));
    });
    abort.signal.addEventListener('abort', stop, { once: true });
    const settle = (value: ToolValue): void => {
      if (settled && value.kind !== 'erred') return late();
      settled = true;
      stop();
      resolve(value);
    };
    const succeed = (value: unknown): void => {
      try {
        settle(valueFrom(answerOf(value) ?? { status: 'success', content: value }, resultBytes));
      } catch (error) {
        settle(erred('not_json', thrownText(error)));
      }
    };
    const fail = (error: unknown): void => settle(erred('error', thrownText(error)));
    try {
      const value = definition.execute(args as never, context);
      if (value instanceof Promise || isThenable(value)) Promise.resolve(value).then(succeed, fail);
      else succeed(value);
    } catch (error) {
      fail(error);
    }
  });
}

const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';
