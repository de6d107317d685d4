/**
 * `submit_result`: a sub-agent submits its result with this tool (docs/internals/contracts.md, REQ-BED-008). The call
 * must be the only one of its reply; the last turn offers no other tool. Invariant: the check reads the reply from the
 * log, so a restart gives the same answer.
 */
import type { Json, LogEntry } from '../../machines/internal.ts';
import type { Plugin } from '../plugins/plugin.ts';
import { defineTool, gatedBy } from '../tools/tool.ts';
import { Toolbox } from '../tools/toolbox.ts';
import { schemaOf } from './spawnTasks.ts';

export const SUBMIT = 'submit_result';

/** The cause of a sub-agent's stop if its parent's budget is spent. The other cause is `submit_result`. */
export const OUT_OF_BUDGET = 'max_budget';

const DESCRIPTION = 'Hands in your result and ends your work. It must be the only call of its reply.';
const ROLE = `You are a sub-agent with one task, and nobody answers questions. When you are done, call ${SUBMIT} with everything that is to be known, alone in its reply.`;
const LAST_TURN = `This is your last turn, and there are no other tools any more: call ${SUBMIT} now with what you have.`;

const parameters = schemaOf<{ result: Json }>(
  (submitted) => {
    const args = submitted as { result?: Json };
    return Object.hasOwn(args, 'result') && args.result !== undefined
      ? { result: args.result }
      : [{ message: 'expected your result', path: ['result'] }];
  },
  {
    type: 'object',
    properties: { result: { type: 'string', description: 'Your result, in full.' } },
    required: ['result'],
    additionalProperties: false,
  },
);

/** The names of all calls in the same reply as this call. */
function replyOf(callId: string, log: readonly LogEntry[]): string[] {
  let first = log.length;
  let isOfReply = false;
  while (first > 0) {
    const entry = log[first - 1];
    if (isOfReply && entry?.type === 'model-reply') break;
    isOfReply ||= entry?.type === 'agent-output' && entry.item.type === 'tool-call' && entry.item.callId === callId;
    first -= 1;
  }
  const names: string[] = [];
  for (const entry of log.slice(first)) {
    if (entry.type === 'model-reply') break;
    if (entry.type === 'agent-output' && entry.item.type === 'tool-call') names.push(entry.item.name);
  }
  return names;
}

/** If `submit_result` is not the only call of a reply, no call of that reply runs. */
function crowded(callId: string, log: readonly LogEntry[]): string | undefined {
  const names = replyOf(callId, log);
  if (names.length < 2 || !names.includes(SUBMIT)) return undefined;
  return `${SUBMIT} must be the only call of its reply, so none of its calls was run`;
}

/** The call only records the result, so it may run again and skips the plugins' gate. */
export const submitTool = gatedBy(
  defineTool({ name: SUBMIT, description: DESCRIPTION, parameters, idempotent: true, execute: () => 'handed in' }),
  crowded,
);

const submitSpecs = new Toolbox([submitTool]).specs;

/** Blocks the other calls of a reply that contains `submit_result`. */
export const aloneRule: Plugin = {
  name: 'sub-agent',
  beforeToolExecute({ call, log }) {
    const why = crowded(call.callId, log());
    return why === undefined ? undefined : { block: why };
  },
};

/** The limits on a sub-agent's turns. */
export interface TurnRules {
  /** The number of turns with tools; one more has only `submit_result`. */
  turns: number;
  submitted(): boolean;
  /** True if the parent's budget is spent. */
  isOverBudget(): boolean;
}

/**
 * Two plugins that end the turns and give the model its last instruction. There are two because a stop's cause is the
 * plugin's name.
 */
export function turnRules({ turns, submitted, isOverBudget }: TurnRules): Plugin[] {
  return [
    {
      name: SUBMIT,
      beforeInference: () => (submitted() ? { terminate: 'the result was handed in' } : undefined),
    },
    {
      name: OUT_OF_BUDGET,
      beforeInference({ turn }) {
        if (isOverBudget()) return { terminate: 'the budget is spent' };
        if (turn < turns) return { context: ROLE };
        return { context: `${ROLE}\n\n${LAST_TURN}`, request: { tools: submitSpecs } };
      },
    },
  ];
}
