/** One request cycle in both views, from wire events as any backend may send them. */
import { type InferenceRound, project, type ResolutionStep } from 'runchart/projector';

const text = (words: string) => [{ type: 'text', text: words }];
const said = (type: string, words: string) => ({ type: 'agent-output', item: { type, text: words } });
const call = (callId: string, name: string) => ({
  type: 'agent-output',
  item: { type: 'tool-call', callId, name, args: {} },
});
const result = (callId: string, outcome: string) => ({ type: 'tool-result', callId, outcome, content: [] });

// #region events
const view = project([
  { type: 'user-message', messageId: 'm1', kind: 'direct', content: text('Mend the test') },
  said('reasoning', 'Where does it fail?'),
  said('assistant', 'I run it first.'),
  call('c1', 'bash'),
  result('c1', 'failed'),
  { type: 'user-message', messageId: 'm2', kind: 'steer', content: text('Only touch sum.ts') },
  call('c2', 'read'),
  call('c3', 'grep'),
  call('c4', 'edit'),
  result('c2', 'succeeded'),
  result('c4', 'succeeded'),
  result('c3', 'succeeded'),
  said('assistant', 'It was an off-by-one.'),
  { type: 'run-stop', reason: 'completed' },
]);
// #endregion

const idsOf = (list: readonly { callId: string }[]) => list.map(({ callId }) => callId).join(' ');
function stepInWords(step: ResolutionStep): string {
  if (step.type !== 'ai-block') return `${step.type} ${step.messageId}`;
  const groups = step.groups.map(({ kind, calls }) => `${kind} [${idsOf(calls)}]`);
  return ['ai-block', step.text ? `"${step.text.text}"` : 'without text', ...groups].join(' · ');
}
function roundInWords({ input, output }: InferenceRound): string {
  const messages = input.messages.map(({ messageId }) => messageId).join(' ');
  const fed = [idsOf(input.results), messages].filter((words) => words !== '').join(' ');
  const gave = [...output.texts.map(({ kind }) => kind), idsOf(output.calls)].filter((words) => words !== '');
  return `in: ${fed} · out: ${gave.join(', ')}`;
}

const [cycle] = view.cycles;
for (const step of cycle?.steps ?? []) console.log(stepInWords(step));
for (const [index, round] of (cycle?.rounds ?? []).entries()) console.log(`round ${index + 1}`, roundInWords(round));
console.log(view.state, cycle?.stop, view.diagnostics);
