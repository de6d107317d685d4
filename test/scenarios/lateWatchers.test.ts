/** A subscriber that arrives during a reply receives all of it, from its first character. */
import fc from 'fast-check';
import { merge } from 'rxjs';
import { describe, expect, it } from 'vitest';
import {
  type Conversation,
  type InFlight,
  type Live,
  type LogEntry,
  ModelError,
  type ModelPart,
} from '../../src/index.ts';
import { withLiveText } from '../../src/projector/index.ts';
import { bench, entry } from '../support/agentBench.ts';
import { echoTool } from '../support/scenarioTools.ts';
import { call, deaf, finish, type Reply, t } from '../support/scriptedReplies.ts';
import { volume } from '../support/tier.ts';
import { type Fate, troubledStore } from '../support/troubledStore.ts';
import { VirtualClock } from '../support/virtualClock.ts';

const thought = (text: string): ModelPart => ({ type: 'reasoning-delta', text });
const input = (index: number, text: string, name?: string): ModelPart => ({
  type: 'tool-call-delta',
  index,
  text,
  ...(name !== undefined && { name }),
});

type Shown = Omit<InFlight, 'runId'>;
const NOTHING: Shown = { text: '', reasoning: '', toolInputs: [] };
const inputOf = (index: number, name: string | undefined, text: string) => ({
  index,
  text,
  ...(name !== undefined && { name }),
});

/** The text that a listener builds from its signals. */
class Assembly {
  shown = NOTHING;

  hear(signal: Live): void {
    const { text, reasoning, toolInputs } = this.shown;
    if (signal.type === 'reset') this.shown = NOTHING;
    if (signal.type === 'text-delta') this.shown = { ...this.shown, text: text + signal.text };
    if (signal.type === 'reasoning-delta') this.shown = { ...this.shown, reasoning: reasoning + signal.text };
    if (signal.type !== 'tool-input-delta') return;
    const { index, name, text: more } = signal;
    const sameInput = toolInputs.find((each) => each.index === index);
    const grown = inputOf(index, sameInput?.name ?? name, (sameInput?.text ?? '') + more);
    const others = toolInputs.map((each) => (each === sameInput ? grown : each));
    this.shown = { ...this.shown, toolInputs: sameInput ? others : [...toolInputs, grown] };
  }
}
const flying = ({ inFlight }: Conversation): Shown => {
  if (!inFlight) return NOTHING;
  const { runId: _, ...shown } = inFlight;
  return shown;
};
const committed = (log: readonly LogEntry[], kind: 'assistant' | 'reasoning'): string =>
  log.flatMap((each) => (each.type === 'agent-output' && each.item.type === kind ? [each.item.text] : [])).join('');

/** The text that the reader of a run builds from its signals. */
async function read(run: AsyncIterable<LogEntry | Live>): Promise<Assembly> {
  const assembly = new Assembly();
  for await (const item of run) if (!('seq' in item)) assembly.hear(item);
  return assembly;
}

/** The number of deltas before a subscriber arrives, and whether it arrives during the last notification. */
type Comer = { behind: number; within: boolean };

class Watchers {
  readonly early = new Assembly();
  readonly #conversation: Conversation;
  readonly #comers: readonly Comer[];
  readonly #late: Assembly[] = [];
  readonly #views: Pick<Shown, 'text' | 'reasoning'>[] = [];
  readonly #readers: Promise<Assembly>[] = [];
  #deltas = 0;
  #run: AsyncIterable<LogEntry | Live> | undefined;

  constructor(conversation: Conversation, comers: readonly Comer[]) {
    this.#conversation = conversation;
    this.#comers = comers;
    conversation.live$.subscribe((signal) => {
      this.early.hear(signal);
      if (!signal.type.endsWith('delta')) return;
      this.#deltas += 1;
      this.#come(true);
    });
  }

  watch(run: AsyncIterable<LogEntry | Live>): void {
    this.#run = run;
    this.#readers.push(read(run));
  }

  /** Called between two deltas: every subscriber shows the same text. */
  between(): void {
    this.#come(false);
    const { shown } = this.early;
    const { text, reasoning } = shown;
    expect(flying(this.#conversation)).toEqual(shown);
    for (const late of this.#late) expect(late.shown).toEqual(shown);
    for (const view of this.#views) expect(view).toEqual({ text, reasoning });
  }

  async end(): Promise<number> {
    for (const reader of this.#readers) expect((await reader).shown).toEqual(this.early.shown);
    return this.#late.length;
  }

  #come(within: boolean): void {
    const coming = this.#comers.some((each) => each.within === within && each.behind === this.#deltas);
    if (!this.#run || !coming) return;
    const late = new Assembly();
    this.#late.push(late);
    this.#conversation.live$.subscribe((signal) => late.hear(signal));
    this.#readers.push(read(this.#run));
    const at = this.#views.push({ text: '', reasoning: '' }) - 1;
    merge(this.#conversation.log$(), this.#conversation.live$)
      .pipe(withLiveText())
      .subscribe(({ inFlight }) => {
        this.#views[at] = inFlight ?? { text: '', reasoning: '' };
      });
  }
}

/** Deltas of one attempt, and whether the connection breaks after them. */
const attempt = fc.record({
  parts: fc.array(
    fc.oneof(
      fc.constantFrom('a', 'b ', 'c').map(t),
      fc.constantFrom('hm', '?').map(thought),
      fc
        .tuple(fc.nat(2), fc.constantFrom('{', '"x"', '}'), fc.constantFrom(undefined, 'echo'))
        .map(([index, text, name]) => input(index, text, name)),
    ),
    { maxLength: 8 },
  ),
  breaks: fc.boolean(),
});
const comer = fc.record({ behind: fc.nat(12), within: fc.boolean() });

describe('a streaming reply', () => {
  it('it is the same for every subscriber at any time, and its text is the stored text', async () => {
    let came = 0;
    const attempts = fc.array(attempt, { minLength: 1, maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(attempts, fc.array(comer, { maxLength: 6 }), async (plan, comers) => {
        const watching: { watchers?: Watchers } = {};
        const replies = plan.map(
          ({ parts, breaks }, i): Reply =>
            async function* () {
              for (const part of parts) {
                yield part;
                watching.watchers?.between();
              }
              if (breaks && i + 1 < plan.length) throw new ModelError({ code: 'network' });
              yield finish('stop');
            },
        );
        const on = await bench({ replies, policies: { onEmptyReply: 'accept', modelRetry: { baseMs: 1 } } });
        const watchers = new Watchers(on.conversation, comers);
        watching.watchers = watchers;
        const run = on.conversation.send('hi');
        watchers.watch(run);
        while (!on.conversation.log().some(({ type }) => type === 'run-stop')) await on.clock.advance(10);
        expect(await run.result).toMatchObject({ termination: 'NaturalEnd' });
        expect(on.conversation.inFlight).toBeNull();
        expect(watchers.early.shown.text).toBe(committed(on.conversation.log(), 'assistant'));
        expect(watchers.early.shown.reasoning).toBe(committed(on.conversation.log(), 'reasoning'));
        came += await watchers.end();
        await on.agent.close();
      }),
      { numRuns: volume.watchers },
    );
    expect(came).toBeGreaterThan(volume.watchers / 2);
  });
});

/** A run whose reply takes a second to be stored, unless another time is set. */
async function slowly(fate: () => Fate = () => ({ afterMs: 1_000 })) {
  const clock = new VirtualClock();
  const isReply = (entries: readonly LogEntry[]): boolean => entries.some(({ type }) => type === 'agent-output');
  const store = troubledStore({ clock, fates: (entries) => (isReply(entries) ? fate() : 'stored') });
  const on = await bench({ replies: [[t('he'), t('llo')]], clock, store });
  const run = on.conversation.send('hi');
  await entry(on.conversation, 'user-message');
  return { ...on, store, run };
}

describe('inFlight', () => {
  it('it is null between replies, and contains all streamed text during one', async () => {
    const seen: (InFlight | null)[] = [];
    const parts = [thought('hm'), t('he'), t('llo'), input(1, '{"m"', 'echo'), input(1, ':1}'), input(0, '')];
    const replies: Reply[] = [
      async function* () {
        look();
        for (const part of parts) yield part;
        look();
        look();
        yield call('c1', 'echo', { m: 'x' });
        yield finish('tool-calls');
      },
      async function* () {
        look();
        yield t('done');
        yield finish('stop');
      },
    ];
    const on = await bench({ replies, tools: [echoTool().tool] });
    const look = (): void => void seen.push(on.conversation.inFlight);
    look();
    const { runId } = await on.conversation.send('hi').result;
    look();
    const toolInputs = [inputOf(1, 'echo', '{"m":1}'), inputOf(0, undefined, '')];
    const whole = { runId, text: 'hello', reasoning: 'hm', toolInputs };
    expect(seen).toEqual([null, null, whole, whole, null, null]);
    expect(seen[2]).toBe(seen[3]);
    expect(Object.isFrozen(seen[2]) && Object.isFrozen(seen[2]?.toolInputs)).toBe(true);
  });

  it('it contains the text of this attempt: a reset clears it', async () => {
    const on = await bench({ replies: [[t('half'), finish('content-filter')]] });
    const seen: string[] = [];
    on.conversation.live$.subscribe(({ type }) => seen.push(`${type} ${on.conversation.inFlight?.text ?? 'nothing'}`));
    await on.conversation.send('hi').result;
    expect(seen.filter((line) => !line.startsWith('status'))).toEqual(['text-delta half', 'reset nothing']);
  });

  it('it remains until the reply is durable, and a subscriber that arrives meanwhile receives the text once', async () => {
    const { store, conversation, clock, run } = await slowly();
    await clock.advance(0);
    expect(store.tried.at(-1)?.some(({ type }) => type === 'agent-output')).toBe(true);
    expect(conversation.inFlight).toMatchObject({ text: 'hello' });
    const texts: string[] = [];
    merge(conversation.log$(), conversation.live$)
      .pipe(withLiveText())
      .subscribe(({ inFlight, cycles }) => {
        const stored = cycles[0]?.rounds[0]?.output.texts.map(({ text }) => text).join('') ?? '';
        texts.push(`${inFlight?.text ?? ''}|${stored}`);
      });
    expect(texts.at(-1)).toBe('hello|');
    await clock.advance(1_000);
    await run.result;
    expect(conversation.inFlight).toBeNull();
    expect(texts.filter((text, i) => text !== texts[i - 1])).toEqual(['|', 'hello|', '|hello']);
  });

  it('it is dropped with a reset if the reply cannot be stored', async () => {
    const { conversation, clock, run, store } = await slowly();
    const assembly = new Assembly();
    conversation.live$.subscribe((signal) => assembly.hear(signal));
    store.trouble(() => 'failed');
    await clock.advance(10_000);
    expect((await run.result).cause).toBe('store');
    expect([conversation.inFlight, assembly.shown]).toEqual([null, NOTHING]);
  });

  it('it is dropped if the conversation is closed while its store is silent', async () => {
    const { conversation, clock, store } = await slowly(() => 'stuck');
    await clock.advance(0);
    expect(store.tried.at(-1)?.some(({ type }) => type === 'agent-output')).toBe(true);
    const assembly = new Assembly();
    conversation.live$.subscribe((signal) => assembly.hear(signal));
    expect(assembly.shown.text).toBe('hello');
    const closed = conversation.close().catch(() => 'silent');
    await clock.advance(60_000);
    expect(await closed).toBe('silent');
    expect([conversation.inFlight, assembly.shown]).toEqual([null, NOTHING]);
  });

  it('it is null after a cancel of a streaming run, and its listeners receive a reset', async () => {
    const on = await bench({ replies: [deaf(t('half'))] });
    const assembly = new Assembly();
    on.conversation.live$.subscribe((signal) => assembly.hear(signal));
    const run = on.conversation.send('hi');
    await on.clock.advance(0);
    expect(on.conversation.inFlight?.text).toBe('half');
    await run.cancel();
    await on.clock.advance(0);
    expect([on.conversation.inFlight, assembly.shown]).toEqual([null, NOTHING]);
  });

  it('a subscriber that acts during the replay receives the consequences after the replay', async () => {
    const on = await bench({ replies: [deaf(t('he'), thought('hm'))] });
    on.conversation.send('hi');
    await on.clock.advance(0);
    const seen: string[] = [];
    on.conversation.live$.subscribe((signal) => {
      seen.push(signal.type === 'status' ? signal.status : signal.type);
      if (seen.length === 1) void on.conversation.cancel();
    });
    await on.clock.advance(10);
    expect(seen.slice(0, 3)).toEqual(['reasoning-delta', 'text-delta', 'cancelling']);
    expect(seen).toHaveLength(5);
  });

  it('a call keeps the id that the provider gave it, in the replay and in what is in flight', async () => {
    const delta = { type: 'tool-call-delta' as const, index: 0 };
    const parts: ModelPart[] = [
      { ...delta, callId: 'p1', name: 'echo', text: '{' },
      { ...delta, text: '"m"' },
    ];
    const on = await bench({ replies: [deaf(...parts)] });
    on.conversation.send('hi');
    await on.clock.advance(0);
    const seen: Live[] = [];
    on.conversation.live$.subscribe((signal) => void seen.push(signal));
    const callInput = { index: 0, callId: 'p1', name: 'echo', text: '{"m"' };
    expect(on.conversation.inFlight?.toolInputs).toEqual([callInput]);
    expect(seen).toMatchObject([{ type: 'tool-input-delta', ...callInput }]);
  });
});
