/** What a conversation would do next, with nothing executed: no model, no tool, no store. */
import {
  type ChartEffect,
  type ConversationInput,
  conversationMachine,
  defaultPolicies,
  nextState,
  runMachine,
} from 'runchart/machines';

// #region conversation
const nobody = {
  ...{ runStart: false, stepStart: false, beforeInference: false, afterInference: false },
  ...{ beforeToolExecute: false, afterToolExecute: false, stepEnd: false, runEnd: false },
  ...{ naturalEnd: false, preCompact: false },
};
const input: ConversationInput = {
  settings: { conversationId: 'trip', policies: defaultPolicies, phases: nobody, models: ['gpt-5.2'] },
  open: { suspended: [], kept: [], reruns: [], decisions: [] },
  counters: { turns: 0, emptyReplies: 0, streaks: [], rounds: [], tokens: 0, costUsd: 0, unpriced: 0 },
  queue: [],
  runId: '',
  waiting: false,
};
const idle = nextState(conversationMachine, undefined, { input });
// #endregion

const told = (effect: ChartEffect): string => {
  if (effect.type === 'log') return `log ${effect.entries.map(({ type }) => type).join(', ')}`;
  if (effect.type === 'ask') return `ask ${effect.request.kind} ${effect.request.id}`;
  if (effect.type === 'spawn') return `start the chart ${effect.src}`;
  return effect.type === 'send' ? `tell ${effect.to} ${effect.event.type}` : effect.type;
};

// #region step
function step(
  machine: Parameters<typeof nextState>[0],
  state: unknown,
  event: { type: string } & Record<string, unknown>,
) {
  const next = nextState(machine, state, event);
  console.log(`${event.type} -> ${JSON.stringify(next.state.value)}`);
  for (const effect of next.effects) console.log(`  ${told(effect)}`);
  return next;
}

const message = { messageId: 'm1', content: [{ type: 'text', text: 'Pack my bag' }], kind: 'direct' };
const busy = step(conversationMachine, idle.state, { type: 'message.sent', ...message });
step(conversationMachine, busy.state, { type: 'cancel.requested' });
// #endregion

// #region child
const [started] = busy.effects;
if (started?.type !== 'spawn') throw new Error('a message starts a run');
const run = step(runMachine, undefined, { type: 'start', input: started.input });
const committed = { kind: 'committed' };
step(runMachine, run.state, { type: 'effect.done', id: 'run_m1/t0/UserMessage', value: committed });
// #endregion

// #region stray
const stray = nextState(runMachine, run.state, { type: 'effect.done', id: 'of another run', value: committed });
console.log(stray.state === run.state, stray.effects);
// #endregion
