/**
 * The model of an agent under test. The script determines its replies and their times. Invariant: a call waits until it is
 * answered. Sub-agents are not scripted: they call each tool that their task names, then submit.
 */
import { type Model, ModelError, type ModelPart, type ModelRequest } from '../../../models/model.ts';
import type { MoveOf } from '../../../scripts/moves.ts';
import { CONTEXT_WINDOW, REPLY_TOKENS } from '../filledWindow.ts';

type Answer = readonly ModelPart[] | ModelError;
interface ModelCall {
  readonly request: ModelRequest;
  answer(answer: Answer): void;
}

export interface HeldModelOptions {
  /** Returns true if the next model call belongs to a sub-agent's conversation. */
  isSubAgents(): boolean;
  /** Returns the arguments for a sub-agent's call. */
  argsFor(tool: string): unknown;
  stirred(): void;
}

const SUBMIT = 'submit_result';

export class HeldModel implements Model {
  readonly id = 'scripted';
  readonly prices = { input: 0, output: 0 };
  readonly contextWindow = CONTEXT_WINDOW;
  readonly maxOutputTokens = REPLY_TOKENS;
  /** Every request of the conversation itself. */
  readonly requests: ModelRequest[] = [];
  /** The call that waits for the script. */
  open: ModelCall | undefined;
  readonly #options: HeldModelOptions;
  /** The number of calls so far, which determines the ids of calls. */
  #calls = 0;
  #ofSubAgents = 0;

  constructor(options: HeldModelOptions) {
    this.#options = options;
  }

  stream(request: ModelRequest, { signal }: { signal: AbortSignal }): AsyncIterable<ModelPart> {
    if (this.#options.isSubAgents()) return this.#subAgentSpeaks(request);
    this.requests.push(request);
    this.#options.stirred();
    return this.#speaks(request, signal);
  }

  /** Answers the open call. Returns false if none is open. */
  reply({ text, calls = [], finish }: Omit<MoveOf<'reply'>, 'do'>): boolean {
    const words = text ?? (calls.length > 0 ? '' : 'done');
    const parts: ModelPart[] = words === '' ? [] : [{ type: 'text-delta', text: words }];
    for (const { name, args } of calls) {
      this.#calls += 1;
      parts.push({ type: 'tool-call', callId: `call${this.#calls}`, name, args: JSON.stringify(args) });
    }
    return this.#answer([...parts, { type: 'finish', reason: finish ?? (calls.length > 0 ? 'tool-calls' : 'stop') }]);
  }

  fail(retryable: boolean): boolean {
    const code = retryable ? 'server' : 'auth';
    return this.#answer(new ModelError({ code, retryable, message: 'the model was made to fail' }));
  }

  /** Drops the open call, because its process died. */
  forget(): void {
    this.open = undefined;
  }

  #answer(answer: Answer): boolean {
    const { open } = this;
    this.open = undefined;
    open?.answer(answer);
    return open !== undefined;
  }

  async *#speaks(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelPart> {
    const answer = await new Promise<Answer>((resolve, reject) => {
      const call: ModelCall = { request, answer: resolve };
      this.open = call;
      const abort = (): void => {
        if (this.open === call) this.open = undefined;
        this.#options.stirred();
        reject(signal.reason);
      };
      if (signal.aborted) abort();
      else signal.addEventListener('abort', abort, { once: true });
    });
    if (answer instanceof ModelError) throw answer;
    yield* answer;
  }

  async *#subAgentSpeaks({ messages, tools }: ModelRequest): AsyncGenerator<ModelPart> {
    const [first] = messages;
    const task = first?.content.map((part) => (part.type === 'text' ? part.text : '')).join(' ') ?? '';
    const isFirst = !messages.some(({ role }) => role === 'assistant');
    const named = tools.filter(({ name }) => name !== SUBMIT && task.split(/[^\w-]+/).includes(name));
    const calls = isFirst && named.length > 0 ? named.map(({ name }) => name) : [SUBMIT];
    for (const name of calls) {
      this.#ofSubAgents += 1;
      const args = name === SUBMIT ? { result: 'done' } : this.#options.argsFor(name);
      yield { type: 'tool-call', callId: `sub${this.#ofSubAgents}`, name, args: JSON.stringify(args) };
    }
    yield { type: 'finish', reason: 'tool-calls' };
  }
}
