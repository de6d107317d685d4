/**
 * A conversation between a person and the agent: input becomes actions, and events are shown. Invariant: the PROMPT
 * chart decides the meaning of a line. This class executes its acts and reports the state of the conversation to it.
 */
import { type Actor, createActor, type SimulatedClock } from 'xstate';

import type { PendingCall } from '../../../machines/internal.ts';
import { textOf } from '../../content/content.ts';
import type { Conversation } from '../../conversation/conversation.ts';
import type { Run } from '../../conversation/run.ts';
import { thrownText } from '../../errors.ts';
import { printableLine } from '../../printable.ts';
import { type CodingAgent, mustWorkIn } from '../codingAgent.ts';
import type { Span, Style } from '../screen.ts';
import { checkSession, newSessionId } from '../sessions/sessionStore.ts';
import { sessionText } from '../sessions/sessionsCommand.ts';
import { approvalFacts, approvalLines } from './approval.ts';
import { lastRequestAt, queuedLine, secondsText, spinner, TranscriptRenderer } from './conversationLines.ts';
import type { ConversationTerminal, TerminalSource, TerminalView } from './conversationTerminal.ts';
import { type AskedCall, type PromptAct, type PromptDecision, promptMachine } from './prompt.machine.ts';
import { completedCommand, contextLine, costLines, helpLines, slashCommand, unknownCommand } from './slashCommands.ts';
import { ownLine, type TextLine } from './textRows.ts';

const BY = 'terminal';
const LISTED = 10;

interface Opened {
  readonly conversation: Conversation;
  readonly renderer: TranscriptRenderer;
  release(): void;
}

export type TerminalMaker = (source: TerminalSource) => ConversationTerminal;

export class InteractiveSession implements TerminalSource {
  /** Resolves with how the person left. */
  readonly finished: Promise<'done' | 'interrupted'>;
  readonly #made: CodingAgent;
  readonly #prompt: Actor<typeof promptMachine>;
  readonly #terminal: ConversationTerminal;
  readonly #history: string[] = [];
  #opened: Opened | undefined;
  /** Acts that are requested while a session opens apply to that session. */
  #opening: Promise<void> | undefined;
  /** Withdraws the queued messages. */
  #queued = new AbortController();
  /** The call of the current question. */
  #askedCall: string | undefined;
  #busySince: number | undefined;
  #runs = new WeakSet<Run>();

  /** `clock` is used only by the delays of the chart. */
  constructor(made: CodingAgent, terminal: TerminalMaker, clock?: SimulatedClock) {
    this.#made = made;
    this.#prompt = createActor(promptMachine, clock ? { clock } : {});
    let leave: (how: 'done' | 'interrupted') => void = () => {};
    this.finished = new Promise((resolve) => {
      leave = resolve;
    });
    this.#prompt.on('*', (act) => {
      if (act.type === 'leave') leave(act.code);
      else this.#perform(act).catch((error: unknown) => this.#say('red', thrownText(error)));
    });
    this.#prompt.subscribe(() => this.#terminal?.changed());
    this.#prompt.start();
    this.#terminal = terminal(this);
  }

  get id(): string | undefined {
    return this.#opened?.conversation.id;
  }

  get isEmpty(): boolean {
    return (this.#opened?.conversation.log().length ?? 0) <= 1;
  }

  /** Opens a session, or a new one, in place of the open one. If that fails it rejects, and the old one stays open. */
  open(id: string | undefined): Promise<void> {
    const opened = this.#open(id).finally(() => {
      this.#opening = undefined;
    });
    this.#opening = opened.catch(() => undefined);
    return opened;
  }

  async #open(id: string | undefined): Promise<void> {
    const conversation = await this.#made.agent.open(id ?? newSessionId());
    try {
      mustWorkIn(conversation, this.#made.cwd);
    } catch (error) {
      await conversation.close();
      throw error;
    }
    const before = this.#opened;
    before?.release();
    await before?.conversation.close();
    const { model, permissionMode } = this.#made.about;
    this.#line(
      ['bold', 'runchart'],
      ['dim', ` · ${printableLine(model)} · mode ${permissionMode} · session ${conversation.id} · /help`],
    );
    this.#follow(conversation);
  }

  close(): void {
    this.#opened?.release();
    this.#prompt.stop();
    this.#terminal.close();
  }

  /** Handles Ctrl-C that arrived as a signal. */
  readonly signalled = (): void => this.interrupt(this.#terminal.text);

  /** Lists the sessions of this directory. */
  async list(): Promise<void> {
    const sessions = await this.#sessions();
    if (sessions.length === 0) return this.#say('plain', 'there is no other session of this directory');
    const now = Date.now();
    for (const [index, session] of sessions.entries()) this.#say('plain', `${index + 1}  ${sessionText(session, now)}`);
    this.#say('dim', '/resume and a number or an id goes on with one of them');
  }

  view(): TerminalView {
    const now = Date.now();
    const { work, exit } = this.#prompt.getSnapshot().value;
    const lines = [...(this.#opened?.renderer.underWay(now) ?? []), ...this.#queue()];
    if (exit === 'leaving') lines.push(ownLine(['yellow', 'Ctrl-C again leaves']));
    else if (work === 'busy') lines.push(this.#statusLine(now));
    const question = this.#question();
    return { lines, question, isAwaiting: work === 'idle' || (typeof work === 'object' && work.asking !== 'deciding') };
  }

  settle(width: number): TextLine[] {
    return this.#opened?.renderer.settle(width) ?? [];
  }

  isTurning(): boolean {
    const { work } = this.#prompt.getSnapshot().value;
    return work === 'busy' || this.#opened?.renderer.isShowing === true;
  }

  history(): readonly string[] {
    return this.#history;
  }

  submit(text: string, later: boolean): void {
    const isAnswer = this.#askedCall !== undefined;
    if (!isAnswer && text.trim() !== '' && text !== this.#history.at(-1)) this.#history.push(text);
    this.#prompt.send({ type: 'SUBMIT', text, later });
  }

  escape(): void {
    this.#prompt.send({ type: 'ESCAPE' });
  }

  interrupt(text: string): void {
    this.#prompt.send({ type: 'INTERRUPT', text });
  }

  end(): void {
    this.#prompt.send({ type: 'END' });
  }

  completed(text: string): string {
    return completedCommand(text);
  }

  #line(...spans: Span[]): void {
    this.#terminal.commit([ownLine(...spans)]);
  }

  #say(style: Style, text: string): void {
    this.#line([style, text]);
  }

  #queue(): TextLine[] {
    return (this.#opened?.conversation.queue ?? []).map(({ kind, content }) => queuedLine(kind, textOf(content)));
  }

  #statusLine(now: number): TextLine {
    const time = secondsText(now - (this.#busySince ?? now));
    const what = this.#opened?.conversation.status === 'cancelling' ? 'stopping' : 'working';
    return ownLine(['cyan', spinner(now)], ['dim', ` ${what} ${time} · Esc stops · Enter steers · Alt+Enter queues`]);
  }

  #question(): Span {
    const { value, context } = this.#prompt.getSnapshot();
    if (typeof value.work !== 'object') return ['cyan', '>'];
    switch (value.work.asking) {
      case 'reasoning':
        return ['yellow', '┃ why not? (Enter for no reason)'];
      case 'editing':
        return ['yellow', '┃ arguments:'];
      case 'deciding':
        return ['yellow', '┃'];
      default:
        return ['yellow', `┃ run it? [y]es, [n]o, [e]dit${context.call?.canAlways ? ', [a]lways, [k]eep' : ''}:`];
    }
  }

  #follow(conversation: Conversation): void {
    const renderer = new TranscriptRenderer();
    const entries = conversation.log();
    const from = lastRequestAt(entries);
    for (const entry of entries.slice(0, from)) renderer.entry(entry);
    for (const entry of entries) if (entry.type === 'user-message') this.#history.push(textOf(entry.content));
    this.#queued = new AbortController();
    this.#askedCall = undefined;
    const log = conversation.log$(from).subscribe((entry) => {
      this.#terminal.commit(renderer.entry(entry));
      this.#scheduleUpdate();
    });
    const live = conversation.live$.subscribe((signal) => {
      this.#terminal.commit(renderer.signal(signal));
      this.#terminal.changed();
      if (signal.type === 'status') this.#scheduleUpdate();
    });
    const release = (): void => {
      log.unsubscribe();
      live.unsubscribe();
    };
    this.#opened = { conversation, renderer, release };
    this.#updatePrompt();
  }

  /** Runs after all entries of an append. */
  #scheduleUpdate(): void {
    queueMicrotask(() => this.#updatePrompt());
  }

  /** Reports the state of the conversation to the chart, and resumes when everything is decided. */
  #updatePrompt(): void {
    const conversation = this.#opened?.conversation;
    if (!conversation) return;
    const [call] = conversation.pending;
    const callKey = call && `${call.callId} ${call.suspension}`;
    if (callKey !== this.#askedCall) {
      this.#askedCall = callKey;
      if (call) this.#ask(call);
      else this.#prompt.send({ type: 'DECIDED' });
    }
    if (!call && conversation.status === 'waiting') this.#watch(conversation.resume());
    const isBusy = conversation.status !== 'idle' && conversation.status !== 'error';
    if (isBusy) this.#busySince ??= Date.now();
    else this.#busySince = undefined;
    this.#prompt.send({ type: isBusy ? 'BEGAN' : 'ENDED' });
    this.#terminal.changed();
  }

  #ask(call: PendingCall): void {
    this.#terminal.commit(approvalLines(call));
    const { callId, suspension, args, payload } = call;
    const canAlways = approvalFacts(payload).rules.length > 0;
    this.#prompt.send({ type: 'ASKED', call: { callId, suspension, args, canAlways }, draft: this.#terminal.text });
  }

  /** Prints the error of a failed run. */
  #watch(run: Run): void {
    if (this.#runs.has(run)) return;
    this.#runs.add(run);
    void run.result.then(({ error }) => {
      if (error) this.#say('red', `error (${error.code}): ${error.message}`);
      this.#updatePrompt();
    });
  }

  async #perform(act: Exclude<PromptAct, { type: 'leave' }>): Promise<void> {
    if (this.#opening) await this.#opening;
    const conversation = this.#opened?.conversation;
    if (!conversation) return;
    const { signal } = this.#queued;
    switch (act.type) {
      case 'send':
        return this.#watch(conversation.send(act.text, { signal }));
      case 'steer':
        return this.#watch(conversation.send(act.text, { signal, kind: 'steer' }));
      case 'later':
        return this.#watch(conversation.send(act.text, { signal, kind: 'followUp' }));
      case 'command':
        return this.#command(act.text, conversation);
      case 'cancel':
        return this.#cancel(conversation);
      case 'clear':
        return this.#terminal.fill('');
      case 'fill':
        return this.#terminal.fill(act.text);
      case 'hint':
        return this.#say('dim', `· ${act.text}`);
      case 'decide':
        return this.#decide(act.call, act.decision, conversation);
    }
  }

  /** Puts the queued messages back into the line. */
  async #cancel(conversation: Conversation): Promise<void> {
    const waiting = conversation.queue.map(({ content }) => textOf(content));
    const cancelled = conversation.cancel();
    if (waiting.length > 0) this.#queued.abort();
    this.#queued = new AbortController();
    await cancelled;
    this.#updatePrompt();
    if (waiting.length > 0)
      this.#terminal.fill([...waiting, this.#terminal.text].filter((text) => text !== '').join('\n'));
  }

  async #decide(
    { callId, suspension }: AskedCall,
    decision: PromptDecision,
    conversation: Conversation,
  ): Promise<void> {
    try {
      const call = conversation.pending.find((each) => each.callId === callId);
      if (decision.action === 'approve' && decision.always && call)
        await this.#remember(call, conversation.cwd, decision.always);
      const { action } = decision;
      const answer = action === 'approve' ? { action } : decision;
      const receipt = await conversation.decide({ callId, suspension, by: BY, ...answer });
      if (receipt !== 'applied') this.#say('yellow', `the decision came to nothing: ${receipt}`);
    } catch (error) {
      this.#say('red', thrownText(error));
      this.#askedCall = undefined;
    }
    this.#updatePrompt();
  }

  async #remember({ name, args }: PendingCall, cwd: string, how: 'session' | 'kept'): Promise<void> {
    const rules = await this.#made.permissions.remember(name, args, cwd);
    for (const rule of rules) this.#say('dim', `· allowed from now on: ${printableLine(rule)}`);
    if (how === 'kept' && rules.length > 0)
      this.#say('dim', `· kept for this directory in ${printableLine(await this.#made.keep(rules))}`);
  }

  async #command(text: string, conversation: Conversation): Promise<void> {
    const { name, argument } = slashCommand(text);
    switch (name) {
      case 'help':
        return this.#terminal.commit(helpLines());
      case 'cost':
        return this.#terminal.commit(costLines(conversation.log()));
      case 'context':
        return this.#terminal.commit([contextLine(conversation.log(), this.#made.model.contextWindow)]);
      case 'compact':
        return this.#compact(argument);
      case 'go':
        return this.#go(conversation);
      case 'new':
        return this.#swap(conversation, undefined);
      case 'resume':
        return argument === '' ? this.list() : this.#swap(conversation, argument);
      case 'later':
        return this.#say('yellow', '/later takes the message: /later and then run the tests');
      default:
        this.#terminal.commit([unknownCommand(name)]);
    }
  }

  #compact(instructions: string): void {
    if (this.#made.model.contextWindow === undefined) {
      return this.#say('yellow', 'how many tokens the model takes is not known, so nothing is summed up');
    }
    this.#made.compactNext(instructions);
    this.#say('plain', 'earlier messages are summed up before the next request');
  }

  #go(conversation: Conversation): void {
    const before = conversation.log().length;
    const run = conversation.resume();
    this.#watch(run);
    void run.result.then(() => {
      if (conversation.log().length === before) this.#say('plain', 'nothing waits and nothing was interrupted');
    });
  }

  async #swap(conversation: Conversation, choice: string | undefined): Promise<void> {
    if (conversation.status === 'active' || conversation.status === 'cancelling') {
      return this.#say('yellow', 'a request is under way: Escape stops it');
    }
    const chosen =
      choice !== undefined && /^\d{1,2}$/.test(choice) ? (await this.#sessions())[Number(choice) - 1]?.id : choice;
    const id = chosen ?? choice;
    if (id === conversation.id) return this.#say('plain', 'this is that session');
    if (id !== undefined) await checkSession(this.#made.directory, id);
    await this.open(id);
  }

  async #sessions() {
    const { agent, cwd } = this.#made;
    return (await agent.list()).filter((each) => each.cwd === cwd && each.id !== this.id).slice(0, LISTED);
  }
}
