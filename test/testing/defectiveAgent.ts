/**
 * The tools, rules and worlds that agents with a mistake are made of. Rule: each agent has a world of its own, and plugins
 * for each process.
 */
import * as z from 'zod';
import { createAgent, defineTool, type Plugin, type Tool } from '../../src/index.ts';
import type { AgentPathsOptions, AgentWorld, Verdict } from '../../src/testing/index.ts';

export type Oracle = 'rule' | 'declaration' | 'schema' | 'suspension' | 'charts' | 'check' | 'snapshot';
type AgentOptions = Omit<Parameters<typeof createAgent>[0], 'model'>;

export interface DefectiveAgent {
  name: string;
  oracle: Oracle;
  make(): { agent(world: AgentWorld): ReturnType<typeof createAgent>; options: AgentPathsOptions };
}

export const wait = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms));

/** The outside world of the tools. */
export class Ledger {
  entries: { what: string; amount: number }[] = [];
  readonly outside = {
    reset: (): void => {
      this.entries = [];
    },
    state: () => this.entries.map((entry) => ({ ...entry })),
  };
  add(what: string, amount = 1): void {
    this.entries.push({ what, amount });
  }
}

export type Changes = Record<string, unknown>;
export const paySchema = z.object({ to: z.string().min(1), euros: z.number().min(0.01).max(10_000) });

/** Pays above 100 euros with an approval only. */
export function pay(ledger: Ledger, changes: Changes = {}): Tool {
  return defineTool({
    name: 'pay',
    description: 'Pays.',
    parameters: paySchema,
    needsApproval: ({ euros }: { euros: number }) => euros > 100,
    execute: async (
      { to, euros }: { to: string; euros: number },
      { sleep, signal }: { sleep(ms: number): Promise<void>; signal: AbortSignal },
    ) => {
      await sleep(1);
      signal.throwIfAborted();
      ledger.add(to, euros);
      return 'paid';
    },
    ...changes,
  } as never);
}
export const payRule = ({ euros }: { euros: number }): Verdict => (euros > 100 ? 'asks' : 'runs');

export const search = (changes: Changes = {}): Tool =>
  defineTool({
    name: 'search',
    description: 'Searches.',
    readOnly: true,
    parameters: z.object({
      text: z.string().max(3000),
      limit: z.number().int().min(1).max(50).optional(),
      sort: z.enum(['new', 'old']).optional(),
      tags: z.array(z.string()).max(3).optional(),
    }),
    execute: () => ({ found: [] }),
    ...changes,
  } as never);

export interface Parts extends Omit<AgentOptions, 'tools' | 'plugins'> {
  /** A function makes new plugins for each process. */
  plugins?: readonly Plugin[] | (() => readonly Plugin[]);
  bounds?: AgentPathsOptions['bounds'];
  tools(ledger: Ledger): readonly Tool[];
  expect?: AgentPathsOptions['expect'];
  examples?: AgentPathsOptions['examples'];
  check?: AgentPathsOptions['check'];
}

export function defect(name: string, oracle: Oracle, parts: () => Parts): DefectiveAgent {
  return {
    name,
    oracle,
    make() {
      const ledger = new Ledger();
      const { tools, expect, examples, check, plugins = [], bounds, ...agentOptions } = parts();
      const pluginsNow = (): readonly Plugin[] => (typeof plugins === 'function' ? plugins() : plugins);
      const made = tools(ledger);
      const options: AgentPathsOptions = {
        ...{ outside: ledger.outside, abortMs: 60, bounds: bounds ?? { calls: 1, decisions: 1, resumes: 1 } },
        ...(expect && { expect }),
        ...(examples && { examples }),
        ...(check && { check }),
      };
      return {
        agent: (world) => createAgent({ ...agentOptions, tools: made, plugins: pluginsNow(), ...world }),
        options,
      };
    },
  };
}

export const payRuled =
  (changes: Changes): (() => Parts) =>
  () => ({ tools: (ledger) => [pay(ledger, changes)], expect: { pay: payRule } });
export const searching =
  (changes: Changes): (() => Parts) =>
  () => ({ tools: () => [search(changes)] });
export const counting =
  (changes: Changes, write: (ledger: Ledger) => unknown): (() => Parts) =>
  () => ({
    tools: (ledger) => [
      defineTool({
        name: 'act',
        description: '',
        parameters: z.object({}),
        execute: () => write(ledger),
        ...changes,
      } as never),
    ],
  });
export const guarded =
  (
    plugin: () => Plugin,
    expect: AgentPathsOptions['expect'] = { deploy: () => 'runs' },
    bounds?: Parts['bounds'],
  ): (() => Parts) =>
  () => ({
    ...(bounds && { bounds }),
    tools: (ledger) => [deploy(ledger)],
    plugins: () => [plugin()],
    ...(expect && { expect }),
  });
export const deploy = (ledger: Ledger): Tool =>
  defineTool({
    name: 'deploy',
    description: 'Deploys.',
    parameters: z.object({ environment: z.enum(['test', 'staging', 'production']) }),
    execute: ({ environment }) => {
      ledger.add(environment);
      return 'deployed';
    },
  });
export const deployRule = ({ environment }: { environment: string }): Verdict =>
  environment === 'production' ? 'asks' : 'runs';
export const shell = (): Tool =>
  defineTool({
    name: 'Bash',
    description: '',
    parameters: z.object({ command: z.string() }),
    execute: ({ command }) => command,
  });
export const commands = (...all: [command: string, then: Verdict][]): AgentPathsOptions['examples'] => ({
  Bash: all.map(([command, then]) => ({ args: { command }, then })),
});
