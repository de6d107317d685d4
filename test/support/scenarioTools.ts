/**
 * The tools and plugins of the scenarios. Invariant: each does one thing and records its calls. A tool that a test must
 * end does not end by itself.
 */
import { z } from 'zod';
import { type Decision, defineTool, type Json, type Plugin, type Tool, type ToolContext } from '../../src/index.ts';

/** Returns its arguments; records the ids of its calls. */
export function echoTool(
  name = 'echo',
  options: { readOnly?: boolean; needsApproval?: boolean | ((args: { m: string }) => boolean | Promise<boolean>) } = {},
) {
  const ran: string[] = [];
  const contexts: ToolContext[] = [];
  const tool = defineTool({
    name,
    description: 'Returns what it is given.',
    parameters: z.object({ m: z.string() }),
    ...options,
    execute(args, context) {
      ran.push(context.callId);
      contexts.push(context);
      return args;
    },
  });
  return { tool, ran, contexts };
}

export const boom: Tool = defineTool({
  name: 'boom',
  description: 'Fails.',
  parameters: z.object({}),
  execute() {
    throw new Error('boom');
  },
});

interface Held {
  context: ToolContext;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/** Blocks until the test releases it. It ignores its signal unless an option changes that. */
export function gateTool(
  name = 'gate',
  options: { hearsAbort?: boolean; readOnly?: boolean; idempotent?: boolean; timeoutMs?: number } = {},
) {
  const { hearsAbort = false, ...rest } = options;
  const held = new Map<string, Held>();
  const waiters = new Map<string, () => void>();
  /** Ids of the started calls, and the highest number of calls at the same time. */
  const started: string[] = [];
  let most = 0;
  let running = 0;
  const tool = defineTool({
    name,
    description: 'Waits.',
    parameters: z.object({}),
    ...rest,
    execute: (_, context) => {
      started.push(context.callId);
      running += 1;
      most = Math.max(most, running);
      return new Promise((resolve, reject) => {
        held.set(context.callId, { context, resolve, reject });
        if (hearsAbort) context.signal.addEventListener('abort', () => reject(context.signal.reason), { once: true });
        waiters.get(context.callId)?.();
      }).finally(() => {
        running -= 1;
      });
    },
  });
  const heldCall = (callId: string): Held => {
    const existing = held.get(callId);
    if (!existing) throw new Error(`${callId} was not started`);
    return existing;
  };
  return {
    tool,
    started,
    most: () => most,
    /** Resolves when the call has started. */
    begun: (callId: string): Promise<void> =>
      held.has(callId) ? Promise.resolve() : new Promise((resolve) => waiters.set(callId, resolve)),
    release: (callId: string, value: unknown = `${callId} is done`) => heldCall(callId).resolve(value),
    fail: (callId: string, error: unknown) => heldCall(callId).reject(error),
    context: (callId: string) => heldCall(callId).context,
  };
}

/** A hook that suspends the calls of one tool until a decision arrives. */
export function asks(
  toolName = 'ask',
  suspend: { reason: string; payload?: Json } = { reason: 'a human must see this' },
) {
  const saw: string[] = [];
  const decisions: (Decision | undefined)[] = [];
  const plugin: Plugin = {
    name: 'asks',
    beforeToolExecute({ call, decision }) {
      saw.push(call.callId);
      decisions.push(decision);
      return call.name === toolName && !decision ? { suspend } : undefined;
    },
  };
  return { plugin, saw, decisions };
}

/** Records each phase in which it is called. */
export function recorder(name = 'recorder') {
  const phases: string[] = [];
  const note = (phase: string) => (): undefined => {
    phases.push(phase);
  };
  const plugin: Plugin = {
    name,
    runStart: note('RunStart'),
    stepStart: note('StepStart'),
    beforeInference: note('BeforeInference'),
    afterInference: note('AfterInference'),
    stepEnd: note('StepEnd'),
    beforeToolExecute: note('BeforeToolExecute'),
    afterToolExecute: note('AfterToolExecute'),
    runEnd: note('RunEnd'),
  };
  return { plugin, phases };
}
