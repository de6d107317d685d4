/**
 * The verdict table: the outcome of each call before it runs, and its end. Invariant: verdicts are measured, never
 * guessed. Bisection finds thresholds. A forbidden act of a tool, a rule or a suspension is a fault.
 */
import { canonical, type EffectValue, type Json, type Settings } from '../../../machines/internal.ts';
import type { Agent } from '../../agent.ts';
import { thrownText } from '../../errors.ts';
import type { ToolSpec } from '../../models/model.ts';
import { beginning } from '../../printable.ts';
import type { AgentProfile } from '../../runtime/subAgentPort.ts';
import { type MoveOf, UNFIT } from '../../scripts/moves.ts';
import type { ToolDefinition } from '../../tools/tool.ts';
import { answerValues, argumentValues, incomplete, numberKeys } from './argumentValues.ts';
import { failureText, type OwnFailure, ownFailures } from './failureCauses.ts';
import { type Frame, sharesToFill } from './filledWindow.ts';
import type { AgentPathsOptions, Verdict } from './pathOptions.ts';
import { checkNamedTools, verdictOf } from './pathOptions.ts';
import { type MakeAgent, ScriptRun } from './scriptRun.ts';
import { type AgentModel, type Behaviour, Recorder } from './search/callBehaviour.ts';
import { plainAnswer } from './search/nextMoves.ts';
import { editsOf, faultOfEdit, type ProbeFault, representatives, type VerdictRow } from './verdictRows.ts';
import { CleanEffects, declarationFaults } from './world/toolWatch.ts';

export interface Probed {
  readonly model: AgentModel;
  readonly rows: readonly VerdictRow[];
  readonly faults: readonly ProbeFault[];
  /** The outside world after the tools ran without an interruption. */
  readonly clean: CleanEffects;
  /** The agent's policies, as the report prints them. */
  readonly policies: object;
}

interface Seen {
  readonly recorder: Recorder;
  readonly run: ScriptRun;
  readonly waits: boolean;
}
/** `outOfSchema`: the tool's own schema rejects the arguments. */
type Sight = Pick<VerdictRow, 'verdict' | 'reason'> & { outOfSchema?: true };

const HALVINGS = 45;
/** The number of inspected turns. No case has more. */
const TURNS = 12;
/** The library's mark in a truncated result. */
const CUT_MARK = /\n\[\d+ characters left out\]\n/;

export class Prober {
  readonly #make: MakeAgent;
  readonly #options: AgentPathsOptions;
  readonly #faults: ProbeFault[] = [];
  readonly #clean = new CleanEffects();
  readonly #definitions = new Map<string, ToolDefinition>();
  readonly #phases = new Map<string, EffectValue>();
  readonly #wanted = new Set<number>();
  #frame: Frame = { system: '', tools: [] };
  #settings: Settings | undefined;
  #answers: Map<string, Json> | undefined;
  #policies: object = {};

  constructor(make: MakeAgent, options: AgentPathsOptions) {
    this.#make = make;
    this.#options = options;
  }

  async run(): Promise<Probed> {
    const first = await this.#ask(this.#plain);
    if (!this.#settings) throw new Error('the agent has no charts to look at');
    if (first.recorder.isJudged) await this.#findAnswers();
    // The answers of phases may depend on the turn.
    const most = this.#settings.policies.maxStopContinues;
    if (this.#settings.phases.naturalEnd)
      await this.#ask(this.#plain, 'all', async (run) => {
        // Beyond this limit the policy ends the run, not the plugin.
        for (let turn = 2; turn <= Math.min(TURNS, most) && run.standing.model; turn++) await run.goOn(this.#plain);
      });
    await this.#ask({ do: 'steer' }, 'all', (run) => this.#endIn(TURNS - 1, run));
    if (this.#settings.phases.naturalEnd)
      for (let turn = 2; turn < TURNS - 1; turn++)
        await this.#ask({ do: 'steer' }, 'all', (run) => this.#endIn(turn, run));
    const [fills] = this.#settings.phases.preCompact ? sharesToFill(this.#settings, this.#frame) : [];
    if (fills !== undefined) {
      const sumUp = async (run: ScriptRun): Promise<void> =>
        void (run.standing.summary && (await run.goOn({ do: 'sumUp' })));
      await this.#ask({ do: 'reply', text: 'so', finish: 'length' }, 'all', sumUp, { fills });
    }
    const rows: VerdictRow[] = [];
    for (const spec of this.#frame.tools) rows.push(...(await this.#rowsOf(spec)));
    const behaviours: Behaviour[] = [];
    for (const row of representatives(rows)) {
      const behaviour = await this.#behaviourOf(row, editsOf(row, rows));
      if (behaviour) behaviours.push(behaviour);
    }
    const idempotent = [...this.#definitions].flatMap(([name, tool]) => (tool.idempotent ? [name] : []));
    const model = {
      settings: this.#settings,
      surroundings: {
        ...{ phases: this.#phases, frame: this.#frame, wanted: this.#wanted },
        ...(this.#answers && { answers: this.#answers }),
      },
      behaviours,
      idempotent: new Set(idempotent),
    };
    return { model, rows, faults: this.#faults, clean: this.#clean, policies: this.#policies };
  }

  get #plain(): MoveOf<'reply'> {
    return { do: 'reply', text: plainAnswer(this.#answers) };
  }

  /** Plays the turns after a first steer. A steer follows every reply, and the reply of the last turn ends the run. */
  async #endIn(last: number, run: ScriptRun): Promise<void> {
    for (let turn = 1; turn <= last && run.standing.model; turn++) {
      await run.goOn(this.#plain);
      if (turn < last - 1 && run.standing.model) await run.goOn({ do: 'steer' });
    }
  }

  /** Finds the texts that the schema of final answers accepts. Each is tested, as arguments are. */
  async #findAnswers(): Promise<void> {
    const answers = new Map<string, Json>();
    this.#answers = answers;
    const values = answerValues(this.#frame.system).map((value) => JSON.stringify(value));
    for (const text of new Set([...values, UNFIT, 'done', 'so'])) {
      const reply: MoveOf<'reply'> = { do: 'reply', text };
      const { recorder } = await this.#ask(reply, 'all', async (run, seen) => {
        // A plugin may continue the run this often before the schema is used.
        const most = this.#settings?.policies.maxStopContinues ?? 0;
        for (let count = 0; count < most && !seen.isAnswered && run.standing.model; count++) await run.goOn(reply);
      });
      if (recorder.answer !== undefined) answers.set(text, recorder.answer);
    }
  }

  async #rowsOf(spec: ToolSpec): Promise<VerdictRow[]> {
    const examples = this.#options.examples?.[spec.name] ?? [];
    const own = examples.map(({ args }) => args);
    const values = argumentValues(spec.parameters, own);
    const lacking = incomplete(spec.parameters, values[0]);
    const rows: VerdictRow[] = [];
    for (const args of lacking === undefined ? values : [...values, lacking]) rows.push(await this.#rowOf(spec, args));
    const edgeRows = await this.#thresholds(spec, rows);
    const edges = new Set(edgeRows.map(({ args }) => canonical(args)));
    const once = rows.filter(({ args }) => !edges.has(canonical(args)));
    const ended: VerdictRow[] = [];
    for (const row of [...once, ...edgeRows])
      ended.push(row.verdict === 'runs' ? { ...row, ...(await this.#endOf(row)) } : row);
    return ended;
  }

  async #rowOf({ name }: ToolSpec, args: Json, edge = false): Promise<VerdictRow> {
    const seen = await this.#sightOf(name, args);
    const expected = this.#expected(name, args, seen);
    const { outOfSchema: _, ...sight } = seen;
    if (expected !== undefined && expected !== sight.verdict) {
      const message = `${name}: ${sight.verdict} where ${expected} is expected`;
      this.#faults.push({ name: `${name}(${JSON.stringify(args)}): ${expected}`, message });
    }
    return { tool: name, args, ...sight, edge, ...(expected && { expected }) };
  }

  /** Returns the verdict that an example or a rule requires for these arguments, if the schema accepts them. */
  #expected(tool: string, args: Json, { outOfSchema }: Sight): Verdict | undefined {
    const key = canonical(args);
    const example = this.#options.examples?.[tool]?.find((each) => canonical(each.args) === key)?.then;
    if (example === 'failed') return 'runs';
    if (example !== undefined) return example;
    const rule = this.#options.expect?.[tool];
    return rule && !outOfSchema ? verdictOf(tool, args, rule(args as never)) : undefined;
  }

  /** Tests the arguments without an execution. */
  async #sightOf(tool: string, args: Json): Promise<Sight> {
    const { recorder } = await this.#call(tool, args, 'all');
    const refused = recorder.call('call1')?.refused;
    if (refused) return { verdict: 'refused', reason: refused.code, outOfSchema: true };
    const gate = recorder.gate('call1');
    if (gate?.kind === 'suspend') return { verdict: 'asks', reason: gate.reason };
    if (gate?.kind === 'block') return { verdict: 'blocked', reason: gate.code };
    if (gate?.kind === 'refuse') return { verdict: 'refused', reason: gate.code };
    return { verdict: 'runs' };
  }

  /** Finds the two values at each border between verdicts, along each numeric key. */
  async #thresholds(spec: ToolSpec, rows: readonly VerdictRow[]): Promise<VerdictRow[]> {
    const edges: VerdictRow[] = [];
    const [base] = rows;
    if (!base || typeof base.args !== 'object' || base.args === null) return edges;
    for (const [key, step] of numberKeys(spec.parameters)) {
      const others = (args: Json): string => canonical({ ...(args as object), [key]: null } as Json);
      const at = ({ args }: VerdictRow): Json => (args as { [key: string]: Json })?.[key] ?? null;
      const along = rows.filter((row) => typeof at(row) === 'number' && others(row.args) === others(base.args));
      along.sort((a, b) => (at(a) as number) - (at(b) as number));
      for (const [index, low] of along.entries()) {
        const high = along[index + 1];
        if (!high || high.verdict === low.verdict) continue;
        edges.push(...(await this.#halved(spec, { key, step, low, high })));
      }
    }
    return edges;
  }

  async #halved(
    spec: ToolSpec,
    { key, step, low, high }: { key: string; step: number; low: VerdictRow; high: VerdictRow },
  ): Promise<VerdictRow[]> {
    const at = ({ args }: VerdictRow): number => (args as { [key: string]: number })[key] ?? 0;
    let [below, above] = [low, high];
    for (let count = 0; count < HALVINGS && at(above) - at(below) > step * 1.5; count++) {
      const steps = Math.round((at(above) - at(below)) / step / 2);
      const middle = Math.round((at(below) + steps * step) * 1e6) / 1e6;
      const row = await this.#rowOf(spec, { ...(below.args as object), [key]: middle } as Json);
      if (row.verdict === below.verdict) below = row;
      else above = row;
    }
    return [
      { ...below, edge: true },
      { ...above, edge: true },
    ];
  }

  /** Executes the real tool once. */
  async #endOf({ tool, args }: VerdictRow): Promise<Pick<VerdictRow, 'end'>> {
    const { recorder, run } = await this.#call(tool, args, this.#options.stubs ?? [], async (started) => {
      if (started.standing.running.includes(1)) await started.goOn({ do: 'tool', call: 1 });
    });
    const end = recorder.end('call1');
    this.#judge(tool, args, end, run);
    if (end?.kind === 'pending') return { end: 'pending' };
    return end ? { end: end.kind === 'succeeded' ? 'succeeded' : 'failed' } : {};
  }

  #judge(tool: string, args: Json, end: EffectValue | undefined, run: ScriptRun): void {
    const name = `${tool}(${beginning(JSON.stringify(args), 200)})`;
    const fault = (says: string, message: string): void => void this.#faults.push({ name: `${name} ${says}`, message });
    const key = canonical(args);
    const allowed = this.#options.examples?.[tool]?.find((each) => canonical(each.args) === key)?.then === 'failed';
    // After a failure that is retried, the end of the probe interrupts the next execution.
    const execution = run.world.tools.of('call1').find(({ threw, aborted }) => threw !== undefined && !aborted);
    if (execution?.threw !== undefined && !allowed)
      fault(
        'is admitted by its schema',
        `${tool}: its schema admits these arguments, and it threw: ${execution.threw}`,
      );
    else if (end?.kind === 'erred' && end.code === 'not_json' && !allowed)
      fault('gives JSON', `${tool}: its result is no JSON`);
    if (end?.kind === 'succeeded' && end.content.some((part) => part.type === 'text' && CUT_MARK.test(part.text)))
      fault('gives a result that fits', `${tool}: its result was cut (limits.resultBytes)`);
    for (const message of declarationFaults(run.world.tools, this.#clean)) fault('does what it declares', message);
  }

  /** Records the call's behaviour, also after each decision. */
  async #behaviourOf(
    { tool, args, verdict }: VerdictRow,
    edits: readonly VerdictRow[],
  ): Promise<Behaviour | undefined> {
    const answers = new Map<string, EffectValue>();
    const take = ({ recorder }: Seen): void => {
      for (const [key, value] of recorder.answers('call1', args)) if (!answers.has(key)) answers.set(key, value);
    };
    const first = await this.#call(tool, args, this.#options.stubs ?? [], (run) => this.#toEnd(run));
    take(first);
    const call = first.recorder.call('call1');
    const edited: Json[] = [];
    if (verdict === 'asks' || first.waits) {
      const gate = first.recorder.gate('call1');
      const isPermission = gate?.kind === 'suspend' && gate.reason === 'permission';
      const actions = isPermission ? (['approve', 'edit'] as const) : (['approve', 'edit', 'answer'] as const);
      let ends = false;
      for (const action of actions) {
        const seen = await this.#call(tool, args, this.#options.stubs ?? [], (run) => this.#decided(run, action));
        take(seen);
        ends ||= !seen.waits;
      }
      for (const edit of edits) {
        const seen = await this.#edited({ tool, args }, edit);
        if (!seen) continue;
        take(seen);
        edited.push(edit.args);
      }
      if (!ends) {
        const message = `${tool}: it waits again behind every decision: no decision ends it`;
        this.#faults.push({ name: `${tool}(${JSON.stringify(args)}) can be decided`, message });
      }
    }
    const idempotent = this.#definitions.get(tool)?.idempotent === true;
    return call && { tool, args, call, idempotent, answers, edits: edited };
  }

  /** Records the behaviour with a person's edit. Undefined if the conversation refuses the edit. */
  async #edited({ tool, args }: Pick<VerdictRow, 'tool' | 'args'>, edit: VerdictRow): Promise<Seen | undefined> {
    let isTaken = true;
    const seen = await this.#call(tool, args, this.#options.stubs ?? [], async (run) => {
      await this.#toEnd(run);
      await run.goOn({ do: 'decide', call: 1, action: 'edit', args: edit.args }).catch(() => {
        isTaken = false;
      });
      if (!isTaken) return;
      await run.goOn({ do: 'resume' });
      await this.#toEnd(run);
    });
    if (!isTaken) return undefined;
    const fault = faultOfEdit({ tool, args }, edit, seen.run.world.tools.of('call1').length > 0);
    if (fault) this.#faults.push(fault);
    return seen;
  }

  async #toEnd(run: ScriptRun): Promise<void> {
    if (run.standing.running.includes(1)) await run.goOn({ do: 'tool', call: 1 });
    if (run.standing.model) await run.goOn(this.#plain);
  }

  async #decided(run: ScriptRun, action: 'approve' | 'edit' | 'answer'): Promise<void> {
    await this.#toEnd(run);
    for (let count = 0; count < 3 && run.standing.waiting.includes(1); count++) {
      await run.goOn({ do: 'decide', call: 1, action }).catch(() => undefined);
      await run.goOn({ do: 'resume' });
      await this.#toEnd(run);
    }
  }

  async #call(
    tool: string,
    args: Json,
    stubs: NonNullable<AgentPathsOptions['stubs']>,
    then?: (run: ScriptRun) => Promise<void>,
  ): Promise<Seen> {
    return this.#ask({ do: 'reply', calls: [{ name: tool, args }] }, stubs, then);
  }

  async #ask(
    reply: Parameters<ScriptRun['goOn']>[0],
    stubs: NonNullable<AgentPathsOptions['stubs']> = 'all',
    then?: (run: ScriptRun, recorder: Recorder) => Promise<void>,
    request: { fills?: number } = {},
  ): Promise<Seen> {
    const { outside, examples } = this.#options;
    const recorder = new Recorder();
    await outside?.reset();
    const argsFor = (name: string): unknown => examples?.[name]?.[0]?.args;
    const made = (agent: Agent): void => {
      checkNamedTools('agentPaths', agent, this.#options);
      this.#policies = (agent.profile as Partial<AgentProfile> | undefined)?.policies ?? {};
    };
    const run = new ScriptRun(this.#make, [], { outside, stubs, answered: recorder.take, argsFor, made });
    let waits = false;
    try {
      await run.begin();
      await run.goOn({ do: 'send', ...request });
      const [asked] = run.world.model.requests;
      if (asked) this.#frame = { system: asked.system, tools: asked.tools };
      if (run.standing.model) await run.goOn(reply);
      await then?.(run, recorder);
      waits = run.standing.waiting.length > 0;
    } finally {
      // If a full window triggers the summary, no plugin has requested it.
      if (request.fills !== undefined) recorder.wanted.clear();
      this.#learn(run, recorder);
      for (const failure of ownFailures(run.lastLog)) this.#failed(failure);
      this.#clean.learn(run.world.tools.executions);
      await run
        .end()
        .catch((error: unknown) => this.#failed({ who: 'the end of the agent', message: thrownText(error) }));
    }
    return { recorder, run, waits };
  }

  /** A failure of the agent's code is one fault, however often it occurs. */
  #failed(failure: OwnFailure): void {
    const name = `${failure.who} does not fail`;
    if (!this.#faults.some((fault) => fault.name === name)) this.#faults.push({ name, message: failureText(failure) });
  }

  #learn(run: ScriptRun, recorder: Recorder): void {
    this.#settings ??= run.world.settings;
    for (const turn of recorder.wanted) this.#wanted.add(turn);
    for (const { definition } of run.world.tools.executions) this.#definitions.set(definition.name, definition);
    for (const [key, value] of recorder.phases) if (!this.#phases.has(key)) this.#phases.set(key, value);
  }
}
