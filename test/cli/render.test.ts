import { describe, expect, test } from 'vitest';
import type { LogEntry, NewEntry } from '../../machines/index.ts';
import { sampleEntries } from '../../machines/log/entryKinds.ts';
import { Renderer } from '../../src/cli/renderLog.ts';
import { type Output, Screen } from '../../src/cli/screen.ts';
import type { Live } from '../../src/live.ts';
import { printable } from '../../src/printable.ts';

function shown(styled = false) {
  const written = { reply: '', steps: '' };
  const output = (name: keyof typeof written): Output => ({
    write: (text) => {
      written[name] += text;
    },
    styled,
  });
  const renderer = new Renderer(new Screen({ reply: output('reply'), steps: output('steps') }));
  let seq = 0;
  const entry = (body: Omit<NewEntry, 'runId'>): void =>
    renderer.entry({ seq: seq++, at: 0, conversationId: 'c', runId: 'r', ...body } as LogEntry);
  const text = (piece: string): void => renderer.signal({ type: 'text-delta', runId: 'r', text: piece });
  return { written, renderer, entry, text };
}
const says = (text: string) => ({ type: 'agent-output', item: { type: 'assistant', text } }) as const;
const replied = (costUsd: number | null) => {
  const usage = { inputTokens: 1_200, outputTokens: 30, cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
  return { type: 'model-reply', turn: 1, model: 'm', finish: 'stop', usage, costUsd } as const;
};
const stopped = { type: 'run-stop', reason: 'completed', cause: 'end_turn' } as const;

describe('the output of a run', () => {
  test.each(['a', 'a\n', 'a\r', 'a\r\n', 'half \ud83d', 'emoji \ud83d\ude00', '\r', '\ud83d'])(
    'streamed text %j is shown to its last character, in pieces of any size, whatever ends it',
    (whole) => {
      const lines = printable(whole);
      const expected = lines.endsWith('\n') ? lines : `${lines}\n`;
      for (const size of [1, 2, whole.length])
        for (const end of [replied(null), stopped]) {
          const { written, entry, text } = shown();
          for (let at = 0; at < whole.length; at += size) text(whole.slice(at, at + size));
          entry(end);
          expect(written.reply).toBe(expected);
        }
    },
  );

  test('a message of several parts is shown by its first part, with a mark that there is more', () => {
    const { written, entry } = shown();
    const content = ['Run /cmd now', 'Its notes', ''].map((part) => ({ type: 'text' as const, text: part }));
    const sent: object = { type: 'user-message', messageId: 'm1', kind: 'direct', content };
    const queued: object = { type: 'message-queued', messageId: 'm2', kind: 'followUp', content };
    for (const each of [sent, queued]) entry(each as Omit<NewEntry, 'runId'>);
    expect(written.steps).toContain('> Run /cmd now …\n');
    expect(written.steps).toContain('+ queued (followUp): Run /cmd now …\n');
  });

  test('streamed text is not repeated with its entry, and other text is shown', () => {
    const { written, entry, text } = shown();
    text('hel');
    text('lo');
    entry(says('hello'));
    entry(replied(null));
    entry(says('again'));
    entry(replied(null));
    expect(written.reply).toBe('hello\nagain\n');
  });

  test('an interrupted reply is marked as void, and the next attempt has a separate line', () => {
    const { written, renderer, entry, text } = shown();
    text('half a');
    renderer.signal({ type: 'reset', runId: 'r' });
    entry({ type: 'model-retry', turn: 1, attempt: 2, waitMs: 1500, model: 'm', reason: 'stream-incomplete' } as never);
    text('a whole reply');
    entry(says('a whole reply'));
    entry(replied(null));
    expect(written.reply).toBe('half a\na whole reply\n');
    expect(written.steps).toBe(
      '↻ the reply broke off: what was shown of it does not count\n↻ attempt 2 in 1.5 s: stream-incomplete\n',
    );
  });

  test('the stop shows turns, tokens and cost of the request, and a suspension in between does not reset them', () => {
    const { written, entry } = shown();
    entry({ type: 'run-started' });
    entry(replied(0.25));
    entry({ type: 'run-suspended', waiting: ['c1'] } as never);
    entry({ type: 'run-resumed', of: 'r' } as never);
    entry(replied(0.5));
    entry(stopped);
    entry({ type: 'run-started' });
    entry(replied(null));
    entry(stopped);
    const lines = written.steps.split('\n');
    expect(lines[2]).toBe('■ completed · 2 turns · 2,400 tokens in, 60 out · $0.7500');
    expect(lines[3]).toBe('■ completed · 1 turn · 1,200 tokens in, 30 out · cost unknown');
  });

  test('the sum of all requests is unknown if one price is', () => {
    const { renderer, entry } = shown();
    entry(replied(0.25));
    expect(renderer.total).toEqual({ turns: 1, inputTokens: 1200, outputTokens: 30, costUsd: 0.25 });
    entry(replied(null));
    expect(renderer.total.costUsd).toBeNull();
  });

  test('a call is shown with its arguments cut, and a result with its size and its first line', () => {
    const { written, entry } = shown();
    const args = { text: 'x'.repeat(500) };
    entry({ type: 'agent-output', item: { type: 'tool-call', callId: 'c1', name: 'Say', args } } as never);
    const content = [{ type: 'text', text: 'first\nsecond\n' }];
    entry({ type: 'tool-result', callId: 'c1', outcome: 'succeeded', content } as never);
    entry({ type: 'tool-result', callId: 'c2', outcome: 'failed', code: 'denied', content: [] } as never);
    const [call, result, failure] = written.steps.split('\n');
    expect(call).toMatch(/^→ Say \{"text":"x+…$/);
    expect(call?.length).toBeLessThan(140);
    expect(result).toBe('  ✓ Say 2 lines, 13 B: first …');
    expect(failure).toBe('  ✗ c2 (failed, denied) no output');
  });

  test('a reply of a sub-agent is not mixed with the main reply', () => {
    const { written, renderer } = shown();
    renderer.signal({ type: 'text-delta', runId: 'r', text: 'own' });
    renderer.signal({ type: 'text-delta', runId: 'k', text: 'other', path: ['p'] });
    renderer.signal({ type: 'reset', runId: 'k', path: ['p'] });
    expect([written.reply, written.steps]).toEqual(['own', '']);
  });

  test('every type of entry can be shown, and no line of it contains a control character', () => {
    const { written, renderer } = shown();
    for (const entry of sampleEntries('c')) {
      const text = JSON.stringify(entry).replaceAll('"hello"', '"\\u001b[2Jhello"');
      renderer.entry(JSON.parse(text) as LogEntry);
    }
    expect(written.steps).toContain('\\x1b[2Jhello');
    expect(written.steps.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u);
  });

  test('colours surround escaped text, and only on a terminal', () => {
    const live: Live = { type: 'reasoning-delta', runId: 'r', text: 'a\u001b[31mb' };
    const plain = shown();
    plain.renderer.signal(live);
    expect(plain.written.steps).toBe('a\\x1b[31mb');
    const styled = shown(true);
    styled.renderer.signal(live);
    expect(styled.written.steps).toBe('\u001b[2ma\\x1b[31mb\u001b[22m');
  });
});
