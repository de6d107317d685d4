/** Questions to the person of an editor: every answer, its decision and saved rules, and the content of the question. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RequestError, type RequestPermissionRequest } from '@agentclientprotocol/sdk';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { EditorQuestions, type QuestionPort } from '../../../src/cli/acp/editorQuestions.ts';
import type { PendingCall } from '../../../src/index.ts';

const RULES = ['Bash(npm test)', 'Read(src/**)'];
const waiting = (more: Partial<PendingCall> = {}): PendingCall => ({
  ...{ callId: 'c1', name: 'Deploy', args: { to: 'x' }, reason: 'approval', suspension: 1, path: ['c1'] },
  ...{ payload: { rules: RULES } },
  ...more,
});
const selected = (optionId: string) => ({ outcome: { outcome: 'selected', optionId } });

/** A session whose editor gives these answers, and a record of the acts of its questions. */
function sessionOf(
  answer: (asked: RequestPermissionRequest) => unknown,
  pending: PendingCall[] = [waiting()],
  cwd = '/p',
) {
  const asked: RequestPermissionRequest[] = [];
  const events: string[] = [];
  const conversation = { id: 's', cwd, pending, decide: vi.fn(async () => 'applied') };
  const made = {
    permissions: { remember: vi.fn(async (): Promise<void> => void events.push('remember')) },
    keep: vi.fn(async (): Promise<void> => void events.push('keep')),
  };
  const notes: string[] = [];
  const cancelled = vi.fn();
  const port = {
    ...{ made, conversation, cancelled },
    client: {
      request: async (_: string, params: RequestPermissionRequest) => {
        events.push('asked');
        asked.push(params);
        return answer(params);
      },
    },
    updated: async () => void events.push('updated'),
    say: (text: string) => void notes.push(text),
  };
  const questions = new EditorQuestions(port as unknown as QuestionPort);
  return { questions, asked, events, conversation, made, notes, cancelled };
}
const { signal } = new AbortController();
const DECIDED = { callId: 'c1', suspension: 1, by: 'editor' };

describe('an answer', () => {
  test.each<[string, object | undefined, string[]]>([
    ['once', { action: 'approve' }, []],
    ['session', { action: 'approve' }, ['remember']],
    ['kept', { action: 'approve' }, ['remember', 'keep']],
    ['reject', { action: 'deny' }, []],
  ])('%s decides %o and keeps %j', async (optionId, decision, kept) => {
    const { questions, events, conversation, made } = sessionOf(() => selected(optionId));
    questions.ask(signal);
    await questions.answered();
    // The updates come first, so the editor has the call before the question about it.
    expect(events).toEqual(['updated', 'asked', ...kept]);
    expect(conversation.decide.mock.calls).toEqual([[{ ...DECIDED, ...decision }]]);
    if (kept.includes('remember'))
      expect(made.permissions.remember.mock.calls).toEqual([['Deploy', { to: 'x' }, '/p']]);
    if (kept.includes('keep')) expect(made.keep.mock.calls).toEqual([[RULES]]);
  });

  test.each(['kept', 'session'])('%s that was not offered denies, and keeps nothing', async (optionId) => {
    const { questions, asked, events, conversation } = sessionOf(() => selected(optionId), [waiting({ payload: {} })]);
    questions.ask(signal);
    await questions.answered();
    expect(asked[0]?.options.map((option) => option.optionId)).toEqual(['once', 'reject']);
    expect(events).toEqual(['updated', 'asked']);
    const reason = `the editor answered with "${optionId}", which was not offered`;
    expect(conversation.decide.mock.calls).toEqual([[{ ...DECIDED, action: 'deny', reason }]]);
  });

  test('cancelled ends the request and decides nothing', async () => {
    const { questions, conversation, cancelled } = sessionOf(() => ({ outcome: { outcome: 'cancelled' } }));
    questions.ask(signal);
    await questions.answered();
    expect([conversation.decide.mock.calls, cancelled.mock.calls]).toEqual([[], [[]]]);
  });

  test('of an editor that cannot ask denies with its reason, and another failure is one of the request', async () => {
    const cannot = sessionOf(() => Promise.reject(RequestError.methodNotFound('session/request_permission')));
    cannot.questions.ask(signal);
    await cannot.questions.answered();
    expect(cannot.conversation.decide.mock.calls).toMatchObject([
      [{ action: 'deny', reason: expect.stringContaining('the editor could not ask: ') }],
    ]);
    const broken = sessionOf(() => Promise.reject(new Error('broken')));
    broken.questions.ask(signal);
    await expect(broken.questions.answered()).rejects.toThrow('broken');
    expect(broken.conversation.decide).not.toHaveBeenCalled();
  });

  test.each(['an answer', 'a failure'])('that comes after the end of the request as %s does nothing', async (how) => {
    const abort = new AbortController();
    const { questions, conversation, events, cancelled } = sessionOf(() => {
      abort.abort();
      return how === 'an answer' ? selected('kept') : Promise.reject(new Error('gone'));
    });
    questions.ask(abort.signal);
    await questions.answered();
    expect([conversation.decide.mock.calls, cancelled.mock.calls, events]).toEqual([[], [], ['updated', 'asked']]);
  });

  test.each(['remember', 'keep'])('counts although %s fails, and a note reports the failure', async (fails) => {
    const { questions, conversation, made, notes } = sessionOf(() => selected('kept'));
    const act = fails === 'keep' ? made.keep : made.permissions.remember;
    act.mockRejectedValue(new Error('disk full'));
    questions.ask(signal);
    await questions.answered();
    expect(conversation.decide.mock.calls).toEqual([[{ ...DECIDED, action: 'approve' }]]);
    expect(notes).toEqual(['the rules could not be kept: disk full']);
  });
});

describe('a suspension', () => {
  test('is asked about once at a time, again after its answer, and another one of the same call besides', async () => {
    const pending = [waiting()];
    const { questions, asked } = sessionOf(() => selected('once'), pending);
    questions.ask(signal);
    questions.ask(signal);
    pending.push(waiting({ suspension: 2 }), waiting({ callId: 'c2' }));
    questions.ask(signal);
    await questions.answered();
    expect(asked.map(({ toolCall }) => toolCall.toolCallId)).toEqual(['c1', 'c1', 'c2']);
    pending.length = 1;
    questions.ask(signal);
    await questions.answered();
    expect(asked).toHaveLength(4);
  });

  test('that comes during a question is waited for too', async () => {
    const pending = [waiting()];
    const { questions, conversation } = sessionOf(() => selected('once'), pending);
    conversation.decide.mockImplementationOnce(async () => {
      pending[0] = waiting({ suspension: 2 });
      questions.ask(signal);
      return 'applied';
    });
    questions.ask(signal);
    await questions.answered();
    expect(conversation.decide).toHaveBeenCalledTimes(2);
  });
});

describe('a question', () => {
  const shown = async (call: PendingCall, cwd?: string) => {
    const { questions, asked } = sessionOf(() => selected('once'), [call], cwd);
    questions.ask(signal);
    await questions.answered();
    return asked[0] as RequestPermissionRequest;
  };
  const textOf = ({ toolCall }: RequestPermissionRequest): unknown =>
    (toolCall.content?.[0] as { content?: { text?: string } } | undefined)?.content?.text;

  test('names the rules of "always" on one line of at most 120 characters, with escapes', async () => {
    const names = async (rules: string[]) =>
      (await shown(waiting({ payload: { rules } }))).options.map(({ name }) => name);
    expect(await names(['a\n', 'b\u202e'])).toEqual([
      'Allow once',
      'Always allow in this session: a\\n, b\\u202e',
      'Always allow in this directory: a\\n, b\\u202e',
      'Reject',
    ]);
    expect((await names(['x'.repeat(120)]))[1]).toBe(`Always allow in this session: ${'x'.repeat(120)}`);
    expect((await names(['x'.repeat(121)]))[2]).toBe(`Always allow in this directory: ${'x'.repeat(119)}…`);
  });

  test('has the reasons of the rules: who asks, the parts that are not allowed if there are several, and where it runs', async () => {
    const part = (text: string, outcome: string, why?: string) => ({ text, outcome, by: 'rule', ...(why && { why }) });
    const text = async (payload: object) => textOf(await shown(waiting({ payload: payload as never })));
    const parts = [part('ls', 'allow'), part('rm\n', 'ask', 'it deletes'), part('cd', 'deny')];
    expect(await text({ by: 'a\u202e', parts, runs: 'outside' })).toBe(
      ['asked because of: a\\u202e', '- rm\\n (rule)', '- cd (rule)', 'it deletes', 'would run outside'].join('\n'),
    );
    expect(await text({ parts: [part('rm', 'ask', 'it deletes')] })).toBe('it deletes');
    expect(await text({})).toBeUndefined();
    expect((await shown(waiting({ payload: {} }))).toolCall.content).toEqual([]);
  });

  test('shows a plan as it is, a new file, and the change of a file up to 500,000 characters', async () => {
    const cwd = mkdtempSync(join(tmpdir(), 'runchart-questions-'));
    onTestFinished(() => rmSync(cwd, { recursive: true }));
    writeFileSync(join(cwd, 'a.txt'), 'a\n');
    expect(textOf(await shown(waiting({ name: 'ExitPlanMode', args: { plan: '# Plan\n' } })))).toBe('# Plan\n');
    const write = async (file_path: string, content: string) =>
      (await shown(waiting({ name: 'Write', args: { file_path, content } }), cwd)).toolCall.content;
    expect(await write('new.txt', 'b')).toMatchObject([{ type: 'diff', oldText: null, newText: 'b' }]);
    expect(await write('a.txt', 'b'.repeat(499_998))).toMatchObject([{ type: 'diff', oldText: 'a\n' }]);
    expect(await write('a.txt', 'b'.repeat(499_999))).toEqual([]);
  });
});
