/**
 * The agent of the command line, as its options say: model, tools, rules, hooks, limits and the store of its sessions. Rule: every command
 * that runs an agent makes it here, so that the same options mean the same everywhere; rules are always in force.
 */
import { resolve } from 'node:path';
import { type Agent, createAgent } from '../agent.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { ConfigurationError } from '../errors.ts';
import { hooks } from '../hooks/hooks.ts';
import type { Model } from '../index.ts';
import { type Permissions, permissions } from '../permissions/permissions.ts';
import { PERMISSION_MODES, type PermissionMode } from '../permissions/verdict.ts';
import { type DeepPartial, type Policies, presets } from '../policies.ts';
import { jsonlStore } from '../stores/jsonl/store.ts';
import { codingTools } from '../tools/coding/index.ts';
import { knownOf, loadAdapter } from './adapter.ts';
import { inspectedAgent } from './inspectCommand.ts';
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
  /** What `system-init` tells. */
  readonly about: { model: string; tools: readonly string[]; permissionMode: PermissionMode };
}

const INSTRUCTIONS = `You help with the files of one directory: your tools read inside it, relative paths and commands start there.
Look things up before you state them; prefer the reading tools, for a person is asked before what changes something. Answer in
plain text, briefly.`;

/** Told of a call that would be asked about where nobody can be asked, with the rules that would allow it: it is denied. */
export type Denied = (call: { name: string; rules: readonly string[] }) => void;

/** `denied`: nobody can be asked. Rejects with ConfigurationError for an option that cannot work. */
export async function codingAgent(options: AgentOptions, denied?: Denied): Promise<CodingAgent> {
  const cwd = await workingDirectory(options.cwd);
  const directory = sessionsDirectory(options.store);
  const mode = modeOf(options.permissionMode);
  const { allow = [], deny = [] } = options;
  const rules = (): Permissions => permissions({ mode, allow, deny, protect: [`/${literalPath(directory)}`] });
  const inForce = rules();
  const policies: DeepPartial<Policies> = { ...presets.coding, onPartialSuspend: 'wait', limits: limitsOf(options) };
  const model = await namedModel(options.model);
  const tools = codingTools();
  const store = countingStore(jsonlStore(directory));
  const plugins = [inForce, ...(denied ? [denying(rules, denied)] : [])];
  const agentOptions = { model, instructions: INSTRUCTIONS, tools, plugins, policies, store, cwd };
  const agent = options.inspect
    ? await inspectedAgent({ control: options.control === true }, (inspect) =>
        createAgent({ ...agentOptions, inspect }),
      )
    : createAgent(agentOptions);
  const about = { model: model.id, tools: tools.map(({ name }) => name), permissionMode: mode };
  return { agent, model, permissions: inForce, cwd, directory, store, about };
}

/** A session's tools work where it began, so it is not taken for one of another directory. */
export function mustWorkIn(conversation: Conversation, cwd: string): void {
  if (conversation.cwd === cwd) return;
  throw new ConfigurationError(
    `the session ${conversation.id} works in ${conversation.cwd}, not in ${cwd}: give --cwd ${conversation.cwd}, or another session`,
  );
}

async function namedModel(name: string | undefined): Promise<Model> {
  if (name === undefined || name === '') {
    throw new ConfigurationError('no model: give one with -m, or set OPENAI_MODEL, by the name its server knows');
  }
  const { openai } = await loadAdapter();
  return openai(name, await knownOf(name, process.env.OPENAI_BASE_URL));
}

function modeOf(given = 'default'): PermissionMode {
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
