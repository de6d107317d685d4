/**
 * Final answers with a schema: which schema a run has, which instructions the model receives, and how a reply is checked.
 * Invariant: the newest message of the request with a schema counts, else the agent's own. The schema of a message that another
 * process received is unknown, and nothing is checked instead. A valid answer is logged as JSON.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { EffectRequest, Json, ModelValue, PhaseValue } from '../../machines/internal.ts';
import type { Policies } from '../agentPolicies.ts';
import { thrownText } from '../errors.ts';
import { parseJson, toJson } from '../json.ts';
import type { Attempted } from '../models/attempt.ts';
import type { Model, ModelRequest } from '../models/model.ts';
import type { PhaseRunner } from '../plugins/phases.ts';
import type { ConversationScope } from '../plugins/toolGate.ts';
import { within } from '../timeLimit.ts';
import { validatorOf } from '../tools/tool.ts';
import { CHECK_MS, issuesText, type JsonSchemaSource } from '../tools/toolbox.ts';
import type { RequestNames } from './currentRequest.ts';
import type { Ports } from './hostPorts.ts';

export interface AnswersOptions {
  around: ConversationScope;
  policies: Policies;
  ports: Pick<Ports, 'setTimer'>;
  /** By message id; the agent's own under the empty id. */
  schemas: ReadonlyMap<string, StandardSchemaV1>;
  named: RequestNames;
}

/** The answer does not fit, and the model has used all its repairs. */
class OutputInvalidError extends Error {
  readonly code = 'output_invalid';
}

type PhaseRequest = Extract<EffectRequest, { kind: 'phase' }>;
type Judged = { kind: 'answer'; value: Json } | { kind: 'unfit'; why: string };

const UNSTORED = Symbol('unstored');
const FENCED = /^```(?:json)?\s*\n([\s\S]*?)\n?```$/i;
const AGAIN = 'Give the final answer again, as JSON that fits, with nothing before or behind it.';

/** The JSON Schema of answers; undefined where any text is valid, or where the schema has none. */
function formOf(schema: StandardSchemaV1): { [key: string]: Json } | undefined {
  const { jsonSchema } = schema['~standard'] as JsonSchemaSource;
  const { $schema: _, ...form } = (jsonSchema?.input({ target: 'draft-07' }) ?? {}) as { [key: string]: Json };
  return !jsonSchema || form.type === 'string' ? undefined : form;
}

/** The instruction for a model that does not hold answers to the schema itself. */
const described = (form: { [key: string]: Json }): string =>
  `Give your final answer as JSON that fits this JSON Schema, with nothing before or behind it:\n${JSON.stringify(form)}`;

/** Schemas that a model's provider refused. They are described in the system text from then on. */
const refusedNative = new WeakMap<Model, WeakSet<StandardSchemaV1>>();

/** Models often fence a reply although they were asked not to. */
const unfenced = (text: string): string => FENCED.exec(text.trim())?.[1] ?? text;

export class FinalAnswers {
  readonly #options: AnswersOptions;
  readonly #phases: PhaseRunner | undefined;
  /** The run of the current model call. */
  #schema: StandardSchemaV1 | undefined;
  #form: { [key: string]: Json } | undefined;
  /** The provider received the schema itself. */
  #isNative = false;
  /** Its reply ended the turn by itself. */
  #stopped = true;
  /** The last run whose answer is not checked. */
  #uncheckedRun: string | undefined;

  constructor(options: AnswersOptions, phases: PhaseRunner | undefined) {
    this.#options = options;
    this.#phases = phases;
  }

  /**
   * Called before a model call. The request then contains the schema of the final answer. Returns the name of a schema that
   * the agent does not have.
   */
  begin(runId: string, attempt: number): string | undefined {
    // Every attempt sends the same request.
    if (attempt > 1) return undefined;
    const wanted = this.#schemaOf(runId);
    if (typeof wanted === 'string') return wanted;
    this.#schema = wanted === UNSTORED ? undefined : wanted;
    if (wanted === UNSTORED && this.#uncheckedRun !== runId) {
      this.#uncheckedRun = runId;
      this.#options.around.diagnose('output_unchecked');
    }
    return undefined;
  }

  /**
   * Calls the model with the schema of the final answer, if the request has one. A provider that refuses the schema is asked once
   * more, with a description in the system text, and that is remembered.
   */
  async ask(
    model: Model,
    request: ModelRequest,
    call: (request: ModelRequest) => Promise<Attempted>,
  ): Promise<Attempted> {
    const schema = this.#schema;
    this.#form = schema && formOf(schema);
    if (!schema || !this.#form) return call(request);
    const describing = { ...request, system: [request.system, described(this.#form)].filter(Boolean).join('\n\n') };
    this.#isNative = model.nativeOutput === true && !refusedNative.get(model)?.has(schema);
    if (!this.#isNative) return call(describing);
    const answered = await call({ ...request, output: { name: 'final_answer', schema: this.#form } });
    if (answered.kind !== 'failed' || answered.code !== 'bad-request') return answered;
    this.#isNative = false;
    const again = await call(describing);
    if (again.kind !== 'failed') {
      const refused = refusedNative.get(model) ?? new WeakSet();
      refusedNative.set(model, refused.add(schema));
    }
    return again;
  }

  /** Marks a reply in a run with a schema. If the reply ends the run, the chart asks for a check of it. */
  held(value: ModelValue): ModelValue {
    if (value.kind !== 'reply') return value;
    this.#stopped = value.finish === 'stop';
    return this.#schema ? { ...value, judged: true } : value;
  }

  /**
   * Runs the phases, then checks the reply where it would end the run and no plugin continues it. Rejects where the answer
   * does not fit its schema and `limits.outputRepairs` is used up.
   */
  async run(request: PhaseRequest, signal: AbortSignal): Promise<PhaseValue> {
    const isEnd = request.phases.includes('naturalEnd');
    const heard = this.#stopped || !isEnd ? await this.#phases?.run(request, signal) : undefined;
    if (!isEnd) return heard ?? { kind: 'done' };
    if (heard?.kind === 'continue' || !this.#schema) return heard ?? { kind: 'done' };
    const { around, policies } = this.#options;
    const judged = await this.#judged(this.#schema, around.reply?.text ?? '', signal);
    if (judged.kind === 'answer') return judged;
    const { outputRepairs } = policies.limits;
    if (this.#repaired(request.runId) < outputRepairs) {
      // A server may ignore the schema without an error, and then the model has not seen it.
      const unseen = this.#isNative && this.#form ? [described(this.#form)] : [];
      return { kind: 'continue', why: 'output', text: [judged.why, AGAIN, ...unseen].join('\n') };
    }
    throw new OutputInvalidError(
      `the answer does not fit its schema, asked again ${outputRepairs} times (limits.outputRepairs). ${judged.why}`,
    );
  }

  /** The schema, its name where the agent has none of that name, or UNSTORED where only another process had it. */
  #schemaOf(runId: string): StandardSchemaV1 | string | typeof UNSTORED | undefined {
    const { schemas, around, named } = this.#options;
    const { entries } = around;
    let run: string | null = runId;
    for (let at = entries.length - 1; at >= 0; at -= 1) {
      const entry = entries[at];
      if (entry?.runId !== run) continue;
      if (entry.type === 'run-started') break;
      if (entry.type === 'run-resumed') run = entry.of;
      if (entry.type !== 'user-message') continue;
      const { messageId, output, outputSchema } = entry;
      const own = output === undefined ? schemas.get(messageId) : schemaNamed(named, output);
      if (own) return own;
      if (outputSchema !== undefined) return UNSTORED;
    }
    return schemas.get('');
  }

  async #judged(schema: StandardSchemaV1, text: string, signal: AbortSignal): Promise<Judged> {
    const parsed = parseJson(unfenced(text));
    try {
      const read = await this.#validated(schema, parsed.kind === 'parsed' ? parsed.value : text, signal);
      // A schema for text accepts text that looks like JSON too.
      const result = read.issues && parsed.kind === 'parsed' ? await this.#validated(schema, text, signal) : read;
      if (!result.issues) return { kind: 'answer', value: storedOf(result.value, parsed, text) };
      if (parsed.kind === 'refused') return { kind: 'unfit', why: `Your answer is no JSON: ${parsed.why}.` };
      return { kind: 'unfit', why: issuesText('Your answer does not fit its schema:', read.issues ?? result.issues) };
    } catch (error) {
      if (signal.aborted) throw error;
      return { kind: 'unfit', why: `Your answer could not be checked: ${thrownText(error)}` };
    }
  }

  async #validated(schema: StandardSchemaV1, value: unknown, signal: AbortSignal) {
    const { setTimer } = this.#options.ports;
    const result = await within(CHECK_MS, { setTimer, signal }, () => validatorOf(schema)(value));
    if (!result.issues && !('value' in result)) throw new TypeError('the schema answered neither a value nor issues');
    return result;
  }

  /** The number of repairs that this run has requested. */
  #repaired(runId: string): number {
    const { entries } = this.#options.around;
    return entries.filter((entry) => entry.runId === runId && entry.type === 'continuation' && entry.why === 'output')
      .length;
  }
}

const schemaNamed = ({ outputs }: RequestNames, name: string): StandardSchemaV1 | string =>
  (Object.hasOwn(outputs, name) ? outputs[name] : undefined) ?? name;

/** The parsed value; where that is not JSON, the value before parsing. */
function storedOf(value: unknown, parsed: ReturnType<typeof parseJson>, text: string): Json {
  const json = toJson(value, 'refused');
  if (json.kind === 'parsed') return json.value;
  return parsed.kind === 'parsed' ? parsed.value : text;
}
