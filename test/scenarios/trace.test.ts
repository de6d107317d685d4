/** The "Read main.go" request, from the first entry to the result (docs/internals/lifecycle.md, Request Trace). */
import { expect, it } from 'vitest';
import { z } from 'zod';
import { defineTool, type Live, type LogEntry } from '../../src/index.ts';
import { bench } from '../support/agentBench.ts';
import { call, finish, lines, t } from '../support/scriptedReplies.ts';

const MAIN = 'package main\n\nfunc main() {}\n';

it('S002-01: two turns with one read between them, in this order, and then the channel closes', async () => {
  let reading: { path: string } | undefined;
  const on = await bench({
    replies: [
      [t("I'll read the file."), call('c1', 'Read', { file_path: 'main.go' }), finish('tool-calls', 10)],
      [t('It is an empty program.'), finish('stop', 20)],
    ],
    tools: [
      defineTool({
        name: 'Read',
        description: 'Reads a file.',
        parameters: z.object({ file_path: z.string() }),
        readOnly: true,
        async execute({ file_path }) {
          reading = { path: file_path };
          await new Promise<void>((resolve) => void on.clock.setTimer(25, resolve));
          return MAIN;
        },
      }),
    ],
  });
  const emitted: string[] = [];
  const run = on.conversation.send('Read main.go');
  const channel = (async () => {
    for await (const item of run) emitted.push(short(item));
  })();
  await on.clock.until(run.result);
  await channel;
  const result = await run.result;
  expect(reading).toEqual({ path: 'main.go' });
  expect(emitted).toEqual([
    'run-started',
    'user-message',
    'checkpoint UserMessage',
    "delta I'll read the file.",
    "assistant I'll read the file.",
    'tool-call c1',
    'model-reply 1 tool-calls',
    'checkpoint AssistantTurnCommitted',
    'tool-started c1',
    'progress c1 0 started',
    'progress c1 25 ended',
    'tool-result c1 succeeded',
    'checkpoint ToolResultsCommitted',
    'delta It is an empty program.',
    'assistant It is an empty program.',
    'model-reply 2 stop',
    'checkpoint AssistantTurnCommitted',
    'run-stop completed end_turn',
    'checkpoint RunFinished',
  ]);
  expect(result).toMatchObject({
    termination: 'NaturalEnd',
    subtype: 'success',
    text: 'It is an empty program.',
    turns: 2,
    usage: { inputTokens: 30, outputTokens: 30 },
    costUsd: null,
    calls: [{ callId: 'c1', name: 'Read', outcome: 'succeeded' }],
  });
  expect(lines(on.model.calls[1]?.messages ?? [])).toEqual([
    'user Read main.go',
    "assistant I'll read the file. +c1",
    `c1 ${MAIN}`,
  ]);
});

function short(item: LogEntry | Live): string {
  switch (item.type) {
    case 'text-delta':
      return `delta ${item.text}`;
    case 'tool-progress':
      return `progress ${item.callId} ${item.elapsedMs} ${String(item.update)}`;
    case 'agent-output':
      return item.item.type === 'tool-call' ? `tool-call ${item.item.callId}` : `${item.item.type} ${item.item.text}`;
    case 'checkpoint':
      return `checkpoint ${item.boundary}`;
    case 'model-reply':
      return `model-reply ${item.turn} ${item.finish}`;
    case 'tool-started':
      return `tool-started ${item.callId}`;
    case 'tool-result':
      return `tool-result ${item.callId} ${item.outcome}`;
    case 'run-stop':
      return `run-stop ${item.reason} ${item.cause}`;
    default:
      return item.type;
  }
}
