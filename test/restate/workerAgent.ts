/**
 * The agent of the tests. Its model follows the last message: a list of tools to call, or a number of rounds. It may be busy at
 * its first call. Its tools write each start and end to a file, and so does a busy model.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import {
  createAgent,
  defineTool,
  type Model,
  ModelError,
  type ModelPart,
  subAgents,
  type Tool,
  type ToolContext,
} from '../../src/index.ts';

export const { values } = parseArgs({
  options: {
    admin: { type: 'string' },
    port: { type: 'string' },
    ledger: { type: 'string' },
    blobs: { type: 'string' },
    postgres: { type: 'string' },
    name: { type: 'string' },
  },
});
const ledger = values.ledger ?? '';

/** Ends when the file of this name is there. */
async function execute(
  name: string,
  { release, ms = 0 }: { release?: string | undefined; ms?: number | undefined },
  { idempotencyKey, signal }: ToolContext,
) {
  const note = (what: string): void =>
    appendFileSync(ledger, `${JSON.stringify({ what, name, key: idempotencyKey, by: values.name, at: Date.now() })}\n`);
  note('start');
  const end = Date.now() + ms;
  while (Date.now() < end || (release !== undefined && !existsSync(release))) {
    if (signal.aborted) {
      note('abort');
      throw signal.reason;
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  note('end');
  return `${name} is done`;
}

const tool = (name: string, options: { idempotent?: boolean; needsApproval?: boolean } = {}): Tool =>
  defineTool({
    name,
    description: name,
    parameters: z.object({ release: z.string().optional(), round: z.number().optional(), ms: z.number().optional() }),
    ...options,
    execute: (args, context) => execute(name, args, context),
  });

/** Fails at the first call with this key. */
function mayBeBusy(ms: string, key: string): void {
  const note = JSON.stringify({ what: 'asked', name: 'model', key, by: values.name, at: Date.now() });
  const isFirst = !readFileSync(ledger, 'utf8').includes(`"key":"${key}"`);
  appendFileSync(ledger, `${note}\n`);
  if (isFirst) throw new ModelError({ code: 'rate-limit', retryAfterMs: Number(ms) });
}

const model: Model = {
  id: 'instructed',
  async *stream({ messages, tools }): AsyncIterable<ModelPart> {
    const last = messages.at(-1);
    const [, ms, key] = /BUSY (\d+) OF (\w+)/.exec(JSON.stringify(messages)) ?? [];
    if (ms && key) mayBeBusy(ms, key);
    const rounds = Number(
      /ROUNDS (\d+)/.exec(JSON.stringify([...messages].reverse().find(({ role }) => role === 'user')))?.[1],
    );
    if (messages.filter(({ role }) => role === 'tool').length < rounds) {
      yield {
        type: 'tool-call',
        callId: `again-${messages.length}`,
        name: 'again',
        args: `{"round":${messages.length}}`,
      };
      yield { type: 'finish', reason: 'tool-calls' };
      return;
    }
    const parts = last?.role === 'user' ? last.content : [];
    const text = parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
    const wanted = /CALL (\[.*\]) END/.exec(text)?.[1];
    if (wanted) {
      const calls = JSON.parse(wanted) as { name: string; release?: string }[];
      for (const [index, { name, ...args }] of calls.entries())
        yield { type: 'tool-call', callId: `${name}-${messages.length}-${index}`, name, args: JSON.stringify(args) };
      yield { type: 'finish', reason: 'tool-calls' };
      return;
    }
    if (!text.includes('SLOWLY') && tools.some(({ name }) => name === 'submit_result')) {
      yield {
        type: 'tool-call',
        callId: `submit-${messages.length}`,
        name: 'submit_result',
        args: '{"result":"done"}',
      };
      yield { type: 'finish', reason: 'tool-calls' };
      return;
    }
    for (const word of ['this ', 'is ', 'the ', 'end']) {
      if (text.includes('SLOWLY')) await new Promise((resolve) => setTimeout(resolve, 300));
      yield { type: 'text-delta', text: word };
    }
    if (text.includes('SLOWLY')) await new Promise((resolve) => setTimeout(resolve, 1000));
    yield { type: 'finish', reason: 'stop' };
  },
};

export const agent = createAgent({
  model,
  tools: [tool('once'), tool('again', { idempotent: true }), tool('ask', { needsApproval: true }), subAgents()],
  policies: { limits: { turns: 1_000 } },
});
