/** Parts of a model's reply in short forms, for test files of any runner. */
import type { Json, ModelPart } from '../../src/index.ts';

export const t = (text: string): ModelPart => ({ type: 'text-delta', text });
export const call = (callId: string, name: string, args: Json = {}): ModelPart => ({
  type: 'tool-call',
  callId,
  name,
  args: typeof args === 'string' ? args : JSON.stringify(args),
});
export const finish = (
  reason: 'stop' | 'tool-calls' | 'length' | 'content-filter' | 'pause',
  tokens = 0,
): ModelPart => ({
  type: 'finish',
  reason,
  usage: { inputTokens: tokens, outputTokens: tokens },
});

/** A call that spawns one sub-agent a task; ids are the first letters of the tasks. */
export const spawn = (callId: string, ...tasks: string[]) =>
  call(callId, 'spawn_agents', { tasks: tasks.map((task) => ({ id: task[0] ?? '', task })) });

export const submit = (callId: string, result: string) => call(callId, 'submit_result', { result });
