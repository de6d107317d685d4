/**
 * Tools that do anything a tool was ever seen to do, and a ledger of what they really did. Rule: each execution is held
 * against the durable log: what was not recorded before it runs is a violation.
 */
import type { Decision, Json } from '../../../machines/index.ts';
import { defineTool, type Tool, type ToolContext, toolResult } from '../../tools/define.ts';
import type { WatchedCall } from './callWatch.ts';
import { callKey } from './facts.ts';
import { SECRET } from './secret.ts';
import type { SimulatedStore } from './store.ts';
import type { World } from './world.ts';

const FAULTS = ['throws', 'throwsAtOnce', 'errs', 'deaf', 'late', 'suspends', 'odd', 'twice', 'meddles'] as const;
type Fault = (typeof FAULTS)[number];

const schema = {
  '~standard': {
    version: 1 as const,
    vendor: 'runchart-simulation',
    jsonSchema: {
      input: () => ({ type: 'object', properties: { text: { type: 'string' } }, required: ['text'] }),
      output: () => ({ type: 'object' }),
    },
    validate: (value: unknown) => {
      const text = typeof value === 'object' && value !== null ? (value as { text?: unknown }).text : undefined;
      return typeof text === 'string'
        ? { value: { text } }
        : { issues: [{ message: 'expected text', path: ['text'] }] };
    },
  },
};

interface Kind {
  readOnly?: true;
  idempotent?: true;
  needsApproval?: true;
  /** Suspends its first execution and answers the replay. */
  asks?: true;
  writes?: true;
}
const KINDS: Readonly<Record<string, Kind>> = {
  note: {},
  look: { readOnly: true },
  fetch: { idempotent: true },
  pay: { needsApproval: true },
  ask: { asks: true },
  write: { writes: true },
};

export class Ledger {
  /** How often each idempotency key was executed. */
  readonly executions = new Map<string, number>();
  readonly #world: World;
  readonly #store: SimulatedStore;

  constructor(world: World, store: SimulatedStore) {
    this.#world = world;
    this.#store = store;
  }

  /** A tool begins: everything that allows it is in the log. */
  begin(name: string, kind: Kind, args: Json, context: ToolContext): void {
    const world = this.#world;
    const { callId, conversationId, idempotencyKey, decision } = context;
    const times = (this.executions.get(idempotencyKey) ?? 0) + 1;
    this.executions.set(idempotencyKey, times);
    const call = this.#store.watchOf(conversationId).calls.calls.get(callId);
    if (!call) return world.violate('I9', `${name} runs for ${callId}, which is not in the log`);
    world.hold(call.status === 'started', 'INV-4', () => `${callId} runs while the log says ${call.status}`);
    world.hold(call.keys.includes(idempotencyKey), 'I10', () => `${callId} runs with an unknown key`);
    const starts = call.keys.filter((key) => key === idempotencyKey).length;
    world.hold(
      kind.idempotent || starts <= 1 + call.retries,
      'I10',
      () => `${callId} is started for the ${starts}. time`,
    );
    const { toolRetry } = world.policies ?? {};
    const most = starts * (toolRetry ? (toolRetry.attempts ?? times) : 1);
    world.hold(times <= most, 'I10', () => `${callId} is executed for the ${times}. time after ${starts} starts`);
    const forbidden = world.facts.blocked.has(callKey(conversationId, callId));
    world.hold(!forbidden, 'I38', () => `${callId} runs though a check forbade it`);
    const { signal } = context;
    world.hold(!signal.aborted, 'I28', () => `${callId} begins after it was cancelled`);
    this.#held(name, kind, callId, call, args, decision);
  }

  #held(name: string, kind: Kind, callId: string, call: WatchedCall, args: Json, decision: Decision | undefined): void {
    const world = this.#world;
    if (decision) world.hold(call.decided.has(call.suspension), 'I17', () => `${callId} runs on a decision in memory`);
    if (decision?.action === 'deny') world.violate('I9', `${callId} runs though it was denied`);
    if (kind.needsApproval) world.hold(decision !== undefined, 'I38', () => `${name} runs unasked`);
    world.hold(JSON.stringify(args) === JSON.stringify(call.args), 'I12', () => `${callId} sees other arguments`);
  }
}

export function simulatedTools(world: World, ledger: Ledger): Tool[] {
  return Object.entries(KINDS).map(([name, kind]) => {
    const { asks: _, writes: __, ...declared } = kind;
    return defineTool({
      ...declared,
      name,
      description: `A simulated tool, ${name}.`,
      parameters: schema,
      execute: (args: { text: string }, context) => {
        world.hold(Object.isFrozen(args), 'I12', () => `the arguments of ${context.callId} can be changed`);
        ledger.begin(name, kind, { ...args }, context);
        return act(world, name, kind, args, context);
      },
    });
  });
}

function act(world: World, name: string, kind: Kind, args: { text: string }, context: ToolContext): unknown {
  const fault = world.fault('tool', world.profile.tool) ? world.tape.pick(FAULTS) : undefined;
  if (fault) world.count(`tool-${fault}`);
  if (fault === 'throwsAtOnce') throw new Error(`tool said no with ${SECRET}`);
  if (fault === 'twice') return twice;
  if (fault === 'meddles') Reflect.set(args, 'text', 'changed by the tool');
  return answer(world, name, kind, args, context, fault);
}

async function answer(
  world: World,
  name: string,
  kind: Kind,
  { text }: { text: string },
  { signal, decision }: ToolContext,
  fault: Fault | undefined,
): Promise<unknown> {
  if (fault === 'deaf') return new Promise(() => undefined);
  const settled = world.tape.chance(0.7) ? world.wait('tool') : undefined;
  const heeds = fault !== 'late' && world.tape.chance(0.7);
  await (settled && heeds ? Promise.race([settled, whenAborted(signal)]) : settled);
  switch (fault) {
    case 'throws':
      throw new Error(`tool said no with ${SECRET}`);
    case 'errs':
      return toolResult.error(`tool said no: ${text}`, 'refused_by_tool');
    case 'suspends':
      return toolResult.pending({ reason: 'more', payload: { text } });
    case 'odd':
      return { deep: [undefined, 1n, () => SECRET] };
  }
  if (kind.asks && (!decision || world.fault('tool-asks-again', 0.2)))
    return toolResult.pending({ reason: 'question', payload: { text } });
  const said = `tool said ${name} ${text} ${SECRET}`;
  return kind.writes ? toolResult.success(said, { state: { [text]: world.tape.next(2) } }) : said;
}

/** It calls back twice, and says something else the second time. */
const twice = {
  // biome-ignore lint/suspicious/noThenProperty: a promise of somebody else's making is what is simulated
  then(resolve: (value: string) => void): void {
    resolve('tool said this');
    resolve('tool said that');
  },
};

const whenAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
