/**
 * The agent of the command line, made from options and configuration files: model, prompt, tools, rules, hooks,
 * limits and the session store. Invariant: every command that runs an agent makes it here, so equal options have
 * equal meaning. The rules always apply.
 */
import { resolve } from 'node:path';
import { type Agent, createAgent } from '../agent.ts';
import { type DeepPartial, type Policies, presets } from '../agentPolicies.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { ConfigurationError } from '../errors.ts';
import { hooks } from '../hooks/hooks.ts';
import type { Model, Plugin } from '../index.ts';
import type { PermissionLayer, Permissions } from '../permissions/permissions.ts';
import { PERMISSION_MODES, type PermissionMode } from '../permissions/verdict.ts';
import {
  allowAlways,
  type Configuration,
  configuredPlugins,
  forgetAllowed,
  loadConfiguration,
} from '../session/configuration.ts';
import { systemPrompt } from '../session/systemPrompt.ts';
import { type BackgroundCommands, backgroundCommandsOf } from '../tools/coding/commands/backgroundCommands.ts';
import { codingTools, EXTRA_TOOLS } from '../tools/coding/index.ts';
import { type Equipment, equipmentOf } from './definitions/agentEquipment.ts';
import { chosenModel, type ModelOptions } from './models/modelChoice.ts';
import { countingStore } from './renderLog.ts';
import type { ServerConnections } from './servers/serverConnections.ts';
import type { ServerEntry } from './servers/serverEntries.ts';
import { type SessionPlace, sessionPlace } from './sessions/sessionPlace.ts';
import { workingDirectory } from './sessions/sessionStore.ts';
import { titleSessions } from './sessions/sessionTitles.ts';
import { FileHistory } from './undo/fileHistory.ts';
import { recordedTools } from './undo/recordedTools.ts';

export interface AgentOptions extends ModelOptions {
  cwd?: string;
  store?: string;
  permissionMode?: string;
  allow?: string[];
  ask?: string[];
  deny?: string[];
  maxTurns?: string;
  maxBudgetUsd?: string;
  /** MCP servers besides those of files. They take the place of servers with the same names. */
  servers?: readonly ServerEntry[];
  inspect?: boolean;
  control?: boolean;
  /** Sessions get titles from a model, unless the configuration turns that off. */
  titled?: boolean;
}

export interface AgentChanges extends AgentOptions {
  /** Rules of the command line and of earlier changes that no longer apply. */
  removed?: readonly string[];
}

export interface CodingAgent {
  readonly agent: Agent;
  readonly model: Model;
  readonly permissions: Permissions;
  readonly cwd: string;
  readonly sessions: SessionPlace;
  readonly store: ReturnType<typeof countingStore>;
  /** The contents of files before the tools changed them. */
  readonly history: FileHistory;
  /** Closes the agent, then the place of the sessions. */
  close(): Promise<void>;
  /** Allows these rules in this directory from now on. Resolves to the file that stores them. */
  keep(rules: readonly string[]): Promise<string>;
  /** Removes a rule that `keep` has saved. Resolves to false if the rule was not saved. */
  unkeep(rule: string): Promise<boolean>;
  /** Summarizes earlier messages before the next request. `instructions` describe the required contents of the summary. */
  compactNext(instructions: string): void;
  /** The rules of the command line and of configuration files. */
  readonly layers: readonly PermissionLayer[];
  /** Commands that Bash has started in the background. */
  readonly background?: BackgroundCommands | undefined;
  /**
   * Makes another agent from the same options, these changes, these further rules and without the removed ones. It shares
   * the MCP servers, which end with the last of their agents, or starts them anew. If it rejects, this agent is as before.
   */
  remade(changes: AgentChanges, restartsServers?: boolean): Promise<CodingAgent>;
  /** The additions of the user and the project: MCP servers, agents, commands and skills. */
  readonly equipment: Equipment;
  /** The contents of `system-init`. */
  readonly about: { model: string; tools: readonly string[]; permissionMode: PermissionMode };
}

/** Called if a call is denied because nobody can be asked; `rules` would allow the call. */
export type Denied = (call: { name: string; rules: readonly string[] }) => void;

interface Surroundings {
  /** Called for a denied call; absent if a person can be asked. */
  denied?: Denied | undefined;
  /** The MCP connections of the agent that this agent may replace. */
  servers?: ServerConnections | undefined;
}

/** Pass `denied` if nobody can be asked. Rejects with ConfigurationError for an invalid option. */
export function codingAgent(options: AgentOptions, denied?: Denied): Promise<CodingAgent> {
  return agentIn({ denied }, options);
}

/** The parts of an agent, except its equipment. */
interface Parts {
  readonly cwd: string;
  readonly sessions: SessionPlace;
  readonly configuration: Configuration;
  readonly model: Model;
  readonly history: FileHistory;
}

/** If it rejects, it first closes everything that it has opened or started. */
async function agentIn(around: Surroundings, options: AgentOptions): Promise<CodingAgent> {
  const cwd = await workingDirectory(options.cwd);
  const sessions = await sessionPlace(options.store);
  const opened: { close(): Promise<void> }[] = [sessions];
  try {
    const configuration = await loadConfiguration({ cwd });
    const model = await chosenModel(options, configuration, cwd);
    // Invalid options and rules are found before a server starts.
    rulesOf(options, configuration, { layers: [], untrusted: [] }, sessions).makePlugins();
    policiesOf(options, configuration);
    const history = new FileHistory(sessions.history);
    const equipment = await equipmentFor({ cwd, options, configuration, history }, around.servers);
    opened.unshift(equipment.servers);
    return await agentWith(equipment, { cwd, sessions, configuration, model, history }, around, options);
  } catch (error) {
    for (const each of opened) await each.close();
    throw error;
  }
}

async function agentWith(
  equipment: Equipment,
  { cwd, sessions, configuration, model, history }: Parts,
  { denied }: Surroundings,
  options: AgentOptions,
): Promise<CodingAgent> {
  const { servers } = equipment;
  const { makePlugins, layers } = rulesOf(options, configuration, equipment, sessions);
  const { rules, plugins: configured } = makePlugins();
  const tools = rules.mode === 'plan' ? [...equipment.tools, rules.exitPlanMode()] : equipment.tools;
  const store = countingStore(sessions.store);
  const { plugin: summaries, compactNext } = summaryOnDemand();
  const plugins = [
    systemPrompt(),
    ...configured,
    summaries,
    servers.plugin,
    ...(denied ? [denying(() => makePlugins().rules, denied)] : []),
  ];
  const agentOptions = { model, tools, plugins, policies: policiesOf(options, configuration), store, cwd };
  const agent = options.inspect ? await inspected(agentOptions, options.control) : createAgent(agentOptions);
  const about = { model: model.id, tools: tools.map(({ name }) => name), permissionMode: rules.mode };
  const endTitles = titlesFor(agent, options, { model, configuration, cwd });
  let closed: Promise<void> | undefined;
  const closeAll = async (): Promise<void> => {
    endTitles?.();
    try {
      await agent.close();
    } finally {
      await servers.close();
      await sessions.close();
    }
  };
  const close = (): Promise<void> => (closed ??= closeAll());
  const remade = (changes: AgentChanges, restartsServers = false): Promise<CodingAgent> =>
    agentIn({ denied, servers: restartsServers ? undefined : servers }, changedOptions(options, changes));
  const keep = (newRules: readonly string[]): Promise<string> => allowAlways(newRules, { cwd });
  const unkeep = (rule: string): Promise<boolean> => forgetAllowed(rule, { cwd });
  const made = {
    agent,
    model,
    permissions: rules,
    cwd,
    sessions,
    store,
    history,
    close,
    keep,
    unkeep,
    compactNext,
    about,
  };
  return { ...made, background: backgroundCommandsOf(tools), layers, remade, equipment };
}

function titlesFor(
  agent: Agent,
  options: AgentOptions,
  { model, configuration, cwd }: Pick<Parts, 'model' | 'configuration' | 'cwd'>,
): (() => void) | undefined {
  const { titles = true, titleModel: name } = configuration;
  if (!options.titled || !titles) return undefined;
  return titleSessions(agent, {
    model: () => (name === undefined ? model : modelNamed(name, options, configuration, cwd)),
  });
}

/** Another model than that of the session. The settings of the session's model do not apply to it. */
function modelNamed(name: string, options: AgentOptions, configuration: Configuration, cwd: string): Promise<Model> {
  const { contextWindow: _window, prices: _prices, ...others } = options;
  return chosenModel({ ...others, model: name }, configuration, cwd);
}

const RULES = ['allow', 'ask', 'deny'] as const;

function changedOptions(options: AgentOptions, { removed = [], ...changes }: AgentChanges): AgentOptions {
  const { contextWindow: _window, prices: _prices, ...ofAnyModel } = options;
  // The settings of one model do not apply to another.
  const changed: AgentOptions = { ...(changes.model === undefined ? options : ofAnyModel), ...changes };
  for (const kind of RULES) {
    const rules = new Set([...(options[kind] ?? []), ...(changes[kind] ?? [])]);
    changed[kind] = [...rules].filter((rule) => !removed.includes(rule));
  }
  return changed;
}

interface EquipmentPlace {
  readonly cwd: string;
  readonly options: AgentOptions;
  readonly configuration: Configuration;
  readonly history: FileHistory;
}

function equipmentFor(
  { cwd, options, configuration, history }: EquipmentPlace,
  servers: ServerConnections | undefined,
): Promise<Equipment> {
  const { sandbox, environment } = configuration;
  return equipmentOf({
    ...{ cwd, servers, moreServers: options.servers },
    codingTools: () => recordedTools(codingTools({ ...(sandbox && { sandbox }), extra: [...EXTRA_TOOLS] }), history),
    variableOf: (name) => process.env[name] || environment[name],
    modelOf: async (name) => {
      if (MODEL_CLASSES.has(name) && !Object.hasOwn(configuration.models, name)) return undefined;
      return modelNamed(name, options, configuration, cwd);
    },
  });
}

/** Names by which other programs choose one of their models. Here they are the model of the session. */
const MODEL_CLASSES: ReadonlySet<string> = new Set(['sonnet', 'opus', 'haiku']);

/** The plugins of rules and hooks, made anew at each call, and the layers of the rules. */
function rulesOf(
  { permissionMode, allow = [], ask = [], deny = [] }: AgentOptions,
  configuration: Configuration,
  { layers: ofAgents, untrusted }: Pick<Equipment, 'layers' | 'untrusted'>,
  sessions: SessionPlace,
) {
  const mode = permissionMode === undefined ? {} : { mode: modeOf(permissionMode) };
  const protect = sessions.files.map((path) => `/${literalPath(path)}`);
  const ofFiles = [...(configuration.permissions.layers ?? []), ...ofAgents];
  const whole = {
    ...configuration,
    permissions: { ...configuration.permissions, layers: ofFiles },
    ignored: [...configuration.ignored, ...untrusted],
  };
  const makePlugins = () => configuredPlugins(whole, { ...mode, allow, ask, deny, protect });
  return { makePlugins, layers: [{ name: 'command line', trusted: true, allow, ask, deny }, ...ofFiles] };
}

/** The server of the page is loaded only on request, because most requests do not need it. */
async function inspected(options: Parameters<typeof createAgent>[0], control = false): Promise<Agent> {
  const { inspectedAgent } = await import('./inspectCommand.ts');
  return inspectedAgent({ control }, (inspect) => createAgent({ ...options, inspect }));
}

/** A plugin that requests one summary of earlier messages, before the next model request. */
export function summaryOnDemand(): { plugin: Plugin } & Pick<CodingAgent, 'compactNext'> {
  let requested: string | undefined;
  const stepStart = (): { compact: true | string } | undefined => {
    const compact = requested;
    requested = undefined;
    return compact === undefined ? undefined : { compact: compact || true };
  };
  const compactNext = (instructions: string): void => {
    requested = instructions;
  };
  return { plugin: { name: 'compact', stepStart }, compactNext };
}

/** Options of the command line take precedence over files. */
function policiesOf(options: AgentOptions, configuration: Configuration): DeepPartial<Policies> {
  const policies = configuration.limited({ ...presets.coding, onPartialSuspend: 'wait' });
  return { ...policies, limits: { ...policies.limits, ...limitsOf(options) } };
}

/** The tools of a session work in its first directory, so it cannot continue in another one. */
export function mustWorkIn(conversation: Conversation, cwd: string): void {
  if (conversation.cwd === cwd) return;
  throw new ConfigurationError(
    `the session ${conversation.id} works in ${conversation.cwd}, not in ${cwd}: give --cwd ${conversation.cwd}, or another session`,
  );
}

function modeOf(value: string): PermissionMode {
  const mode = PERMISSION_MODES.find((each) => each === value);
  if (mode) return mode;
  throw new ConfigurationError(`expected --permission-mode to be one of ${PERMISSION_MODES.join(', ')}; got ${value}`);
}

function limitsOf({ maxTurns, maxBudgetUsd }: AgentOptions): DeepPartial<Policies['limits']> {
  const turns = numberOf('--max-turns', maxTurns);
  if (turns !== undefined && (!Number.isInteger(turns) || turns < 1)) {
    throw new ConfigurationError(`expected --max-turns to be a whole number from 1; got ${maxTurns}`);
  }
  const costUsd = numberOf('--max-budget-usd', maxBudgetUsd);
  return { ...(turns !== undefined && { turns }), ...(costUsd !== undefined && { costUsd }) };
}

function numberOf(option: string, value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const number = Number(value);
  if (value.trim() !== '' && Number.isFinite(number) && number >= 0) return number;
  throw new ConfigurationError(`expected ${option} to be a number; got ${value}`);
}

/** Escapes all pattern characters of a path. */
const literalPath = (path: string): string => resolve(path).replace(/[\\*?[\]!#]/g, '\\$&');

const NOBODY = 'it needs the approval of a person, and nobody can be asked here. Do without it, or say what is needed';

/** Answers in place of an absent person. `judge` makes the same rules again; its rules may learn. */
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
