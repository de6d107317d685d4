/**
 * A reply as it is streamed to listeners, without secrets. Rule: the joined pieces are the redacted text, and a listener that joins in
 * the middle receives exactly what the others have received.
 */
import type { InFlight, Live } from '../live.ts';
import { SecretFreeText } from './secretText.ts';

type Delta = Extract<Live, { text: string }>;
type Input = InFlight['toolInputs'][number];
type Send = (signal: Live) => void;

export interface RedactedReplyOptions {
  /** Every form of each secret. */
  secrets(): readonly string[];
  redact(text: string): string;
  /** Names of tools come from the host and are never redacted. */
  isTool(name: string): boolean;
  /** Undefined without listeners. */
  live(): Send | undefined;
}

const keyOf = (signal: Delta): string =>
  signal.type === 'tool-input-delta' ? `${signal.type} ${signal.index}` : signal.type;

const isText = (key: string): boolean => !key.startsWith('tool');

export class RedactedReply {
  readonly #options: RedactedReplyOptions;
  /** For each text: the emitted part, and the part that still waits. */
  readonly #texts = new Map<string, { waiting: SecretFreeText; shown: string; last: Delta }>();
  #inFlight: InFlight | null = null;

  constructor(options: RedactedReplyOptions) {
    this.#options = options;
  }

  /** Receives each signal of an attempt, also without listeners. */
  readonly take: Send = (signal) => {
    if ('text' in signal) return this.#delta(signal);
    if (signal.type === 'reset') {
      this.#texts.clear();
      this.#inFlight = null;
    }
    this.#options.live()?.(signal);
  };

  /** The reply is complete, so the waiting text is emitted. */
  end(): void {
    for (const key of this.#texts.keys()) this.#finish(key);
  }

  /** The complete text that was emitted so far; null before the first delta and after a reset. */
  get inFlight(): InFlight | null {
    const [first] = this.#texts.values();
    if (!first) return null;
    this.#inFlight ??= Object.freeze({
      runId: first.last.runId,
      text: this.#texts.get('text-delta')?.shown ?? '',
      reasoning: this.#texts.get('reasoning-delta')?.shown ?? '',
      toolInputs: Object.freeze([...this.#texts.values()].flatMap(inputOf)),
    });
    return this.#inFlight;
  }

  #delta(delta: Delta): void {
    const { redact, isTool, secrets } = this.#options;
    const isNamed = delta.type === 'tool-input-delta' && delta.name !== undefined && !isTool(delta.name);
    const named = isNamed ? { ...delta, name: redact(delta.name ?? '') } : delta;
    const hasId = named.type === 'tool-input-delta' && named.callId !== undefined;
    const signal = hasId ? { ...named, callId: redact(named.callId ?? '') } : named;
    const key = keyOf(signal);
    // One text ends where one of another kind begins. Arguments end no text, and may come in turns.
    for (const other of this.#texts.keys()) if (other !== key && isText(other) && isText(key)) this.#finish(other);
    const text = this.#texts.get(key) ?? { waiting: new SecretFreeText(), shown: '', last: signal };
    this.#texts.set(key, text);
    const { last } = text;
    if (signal.type === 'tool-input-delta' && last.type === 'tool-input-delta') {
      const { name = signal.name, callId = signal.callId } = last;
      text.last = { ...signal, ...(name !== undefined && { name }), ...(callId !== undefined && { callId }) };
    }
    this.#show(key, signal, text.waiting.push(signal.text, secrets()));
  }

  #finish(key: string): void {
    const text = this.#texts.get(key);
    const rest = text?.waiting.end(this.#options.secrets()) ?? '';
    if (text && rest !== '') this.#show(key, text.last, rest);
  }

  #show(key: string, signal: Delta, text: string): void {
    const held = this.#texts.get(key);
    if (held) held.shown += text;
    this.#inFlight = null;
    // A first piece may contain the name of a call and no text.
    if (text !== '' || signal.text === '' || ('name' in signal && signal.name !== undefined))
      this.#options.live()?.({ ...signal, text });
  }
}

const inputOf = ({ last, shown }: { last: Delta; shown: string }): Input[] => {
  if (last.type !== 'tool-input-delta') return [];
  const { index, name, callId } = last;
  const named = { ...(callId !== undefined && { callId }), ...(name !== undefined && { name }) };
  return [Object.freeze({ index, ...named, text: shown })];
};
