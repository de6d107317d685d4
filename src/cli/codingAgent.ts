/**
 * The agent of the command line, as its options and the configuration files say: model, prompt, tools, rules, hooks, limits and the store of
 * its sessions. Rule: every command that runs an agent makes it here, so that the same options mean the same everywhere; rules are always in force.
 */
import { resolve } from 'node:path';
import { type Agent, createAgent } from '../agent.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { ConfigurationError } from '../errors.ts';
import { hooks } from '../hooks/hooks.ts';
import type { Model, Plugin } from '../index.ts';
import type { Permissions } from '../permissions/permissions.ts';
import { PERMISSION_MODES, type PermissionMode } from '../permissions/verdict.ts';
import { type DeepPartial, type Policies, presets } from '../policies.ts';
import { allowAlways, type Configuration, configuredPlugins, loadConfiguration } from '../session/configuration.ts';
import { systemPrompt } from '../session/systemPrompt.ts';
import { jsonlStore } from '../stores/jsonl/store.ts';
import { codingTools } from '../tools/coding/index.ts';
import { knownOf, loadAdapter } from './adapter.ts';
import { countingStore } from './render.ts';
import { sessionsDirectory, workingDirectory } from './sessions/sessionStore.ts';

export interface AgentOptions {
  model?: string;
  cwd?: string;
  store?: string;
  permissionMode?: string;
  allow?: string[];
  deny?: string[];
  maxTurns?: string;
  maxBudgetUsd?: string;
  inspect?: boolean;
  control?: boolean;
}

export interface CodingAgent {
  readonly agent: Agent;
  readonly model: Model;
  readonly permissions: Permissions;
  readonly cwd: string;
  /** Where the sessions are kept. */
  readonly directory: string;
  readonly store: ReturnType<typeof countingStore>;
  /** These rules are allowed in this directory from now on, by the file that is answered. */
  keep(rules: readonly string[]): Promise<string>;
  /** Earlier messages are summed up before the next request; `instructions` say what matters. */
  compactNext(instructions: string): void;
  /** What `system-init` tells. */
  readonly about: { model: string; tools: readonly string[]; permissionMode: PermissionMode };
}

/** Told of a call that would be asked about where nobody can be asked, with the rules that would allow it: it is denied. */
export type Denied = (call: { name: string; rules: readonly string[] }) => void;

/** `denied`: nobody can be asked. Rejects with ConfigurationError for an option that cannot work. */
export async function codingAgent(options: AgentOptions, denied?: Denied): Promise<CodingAgent> {
  const cwd = await workingDirectory(options.cwd);
  const directory = sessionsDirectory(options.store);
  const configuration = await loadConfiguration({ cwd });
  const { permissionMode, allow = [], deny = [] } = options;
  const mode = permissionMode === undefined ? {} : { mode: modeOf(permissionMode) };
  const made = () =>
    configuredPlugins(configuration, { ...mode, allow, deny, protect: [`/${literalPath(directory)}`] });
  const { rules, plugins: configured } = made();
  const model = await namedModel(options.model || configuration.model, configuration.environment);
  const tools = codingTools(configuration.sandbox ? { sandbox: configuration.sandbox } : {});
  const store = countingStore(jsonlStore(directory));
  const summaries = summaryOnDemand();
  const plugins = [
    systemPrompt(),
    ...configured,
    summaries.plugin,
    ...(denied ? [denying(() => made().rules, denied)] : []),
  ];
  const agentOptions = { model, tools, plugins, policies: policiesOf(options, configuration), store, cwd };
  const agent = options.inspect ? await inspected(agentOptions, options.control) : createAgent(agentOptions);
  const about = { model: model.id, tools: tools.map(({ name }) => name), permissionMode: rules.mode };
  const { compactNext } = summaries;
  const keep = (kept: readonly string[]): Promise<string> => allowAlways(kept, { cwd });
  return { agent, model, permissions: rules, cwd, directory, store, keep, compactNext, about };
}

/** What serves the page is loaded where somebody wants it: most requests do without. */
async function inspected(options: Parameters<typeof createAgent>[0], control = false): Promise<Agent> {
  const { inspectedAgent } = await import('./inspectCommand.ts');
  return inspectedAgent({ control }, (inspect) => createAgent({ ...options, inspect }));
}

/** A plugin that wants earlier messages summed up once, before the request behind the word. */
export function summaryOnDemand(): { plugin: Plugin } & Pick<CodingAgent, 'compactNext'> {
  let wanted: string | undefined;
  const stepStart = (): { compact: true | string } | undefined => {
    const compact = wanted;
    wanted = undefined;
    return compact === undefined ? undefined : { compact: compact || true };
  };
  const compactNext = (instructions: string): void => {
    wanted = instructions;
  };
  return { plugin: { name: 'compact', stepStart }, compactNext };
}

/** What is given on the command line counts more than any file. */
function policiesOf(options: AgentOptions, configuration: Configuration): DeepPartial<Policies> {
  const policies = configuration.limited({ ...presets.coding, onPartialSuspend: 'wait' });
  return { ...policies, limits: { ...policies.limits, ...limitsOf(options) } };
}

/** A session's tools work where it began, so it is not taken for one of another directory. */
export function mustWorkIn(conversation: Conversation, cwd: string): void {
  if (conversation.cwd === cwd) return;
  throw new ConfigurationError(
    `the session ${conversation.id} works in ${conversation.cwd}, not in ${cwd}: give --cwd ${conversation.cwd}, or another session`,
  );
}

/** `environment`: what the user's configuration says where the process's own says nothing. */
async function namedModel(name: string | undefined, environment: Configuration['environment']): Promise<Model> {
  if (name === undefined || name === '') {
    throw new ConfigurationError('no model: give one with -m, or set OPENAI_MODEL, by the name its server knows');
  }
  const said = (variable: string): string | undefined => process.env[variable] || environment[variable];
  const apiKey = said('OPENAI_API_KEY');
  const baseURL = said('OPENAI_BASE_URL');
  const { openai } = await loadAdapter();
  return openai(name, {
    ...(await knownOf(name, baseURL)),
    ...(apiKey !== undefined && { apiKey }),
    ...(baseURL !== undefined && { baseURL }),
  });
}

function modeOf(given: string): PermissionMode {
  const mode = PERMISSION_MODES.find((known) => known === given);
  if (mode) return mode;
  throw new ConfigurationError(`expected --permission-mode to be one of ${PERMISSION_MODES.join(', ')}; got ${given}`);
}

function limitsOf({ maxTurns, maxBudgetUsd }: AgentOptions): DeepPartial<Policies['limits']> {
  const turns = numberOf('--max-turns', maxTurns);
  if (turns !== undefined && (!Number.isInteger(turns) || turns < 1)) {
    throw new ConfigurationError(`expected --max-turns to be a whole number from 1; got ${maxTurns}`);
  }
  const costUsd = numberOf('--max-budget-usd', maxBudgetUsd);
  return { ...(turns !== undefined && { turns }), ...(costUsd !== undefined && { costUsd }) };
}

function numberOf(option: string, given: string | undefined): number | undefined {
  if (given === undefined) return undefined;
  const number = Number(given);
  if (given.trim() !== '' && Number.isFinite(number) && number >= 0) return number;
  throw new ConfigurationError(`expected ${option} to be a number; got ${given}`);
}

/** No character of it is a pattern. */
const literalPath = (path: string): string => resolve(path).replace(/[\\*?[\]!#]/g, '\\$&');

const NOBODY = 'it needs the approval of a person, and nobody can be asked here. Do without it, or say what is needed';

/** Answers in place of a person who is not there. `judge`: the same rules once more, which may learn. */
const denying = (judge: () => Permissions, denied: Denied) =>
  hooks({
    PermissionRequest: [
      {
        run: async ({ toolName = '', args = null, cwd }) => {
          denied({ name: toolName, rules: await judge().remember(toolName, args, cwd) });
          return { decision: 'block', reason: NOBODY };
        },
      },
    ],
  });
