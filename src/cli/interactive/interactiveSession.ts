/**
 * A conversation between a person and the agent: input becomes actions, and events are shown. Invariant: the PROMPT
 * chart decides the meaning of a line. This class executes its acts and reports the state of the conversation to it.
 */
import { type Actor, createActor, type SimulatedClock } from 'xstate';
import type { Conversation } from '../../conversation/conversation.ts';
import type { Run } from '../../conversation/run.ts';
import { thrownText } from '../../errors.ts';
import type { RunResult } from '../../index.ts';
import { type AgentChanges, type CodingAgent, mustWorkIn } from '../codingAgent.ts';
import type { CommandPort } from '../commands/commandPort.ts';
import { tellEquipment } from '../commands/equipmentLines.ts';
import { InputMenus } from '../commands/fileMenu.ts';
import { openedPlanLines } from '../commands/keptPlan.ts';
import { PersonCommands } from '../commands/personCommands.ts';
import { performCommand } from '../commands/sessionCommands.ts';
import type { TextFormats } from '../formatted/textFormats.ts';
import { CONTINUED, summaryNote, windowAfter } from '../models/contextRecovery.ts';
import { CallQuestions } from '../questions/callQuestions.ts';
import type { Style } from '../screen.ts';
import { SessionChooser } from '../sessions/sessionChooser.ts';
import { newSessionId } from '../sessions/sessionStore.ts';
import { UndoCommands } from '../undo/undoCommands.ts';
import { endingLines, goneCommands, goneLine, goneNote, showEnds } from './backgroundLines.ts';
import { openedLine, openedLines, type TranscriptRenderer, typedText } from './conversationLines.ts';
import type { ConversationTerminal, TerminalSource, TerminalView } from './conversationTerminal.ts';
import { type PromptAct, promptMachine } from './prompt.machine.ts';
import { footLines, isAwaiting, questionSpan, rendererFor } from './promptLines.ts';
import { ownLine, type TextLine } from './textRows.ts';

interface Opened {
  readonly conversation: Conversation;
  readonly renderer: TranscriptRenderer;
  release(): void;
}

export type TerminalMaker = (source: TerminalSource) => ConversationTerminal;

export class InteractiveSession implements TerminalSource {
  /** Resolves with how the person left. */
  readonly finished: Promise<'done' | 'interrupted'>;
  #made: CodingAgent;
  readonly #menus = new InputMenus(
    () => this.#made,
    () => this.#terminal.changed(),
  );
  readonly #prompt: Actor<typeof promptMachine>;
  readonly #terminal: ConversationTerminal;
  readonly #history: string[] = [];
  #opened: Opened | undefined;
  /** Acts that are requested while a session opens apply to that session. */
  #opening: Promise<void> | undefined;
  /** The session that could not be opened again. The next act tries it once more. */
  #unopened: string | undefined;
  /** Withdraws the queued messages. */
  #queued = new AbortController();
  readonly #questions: CallQuestions;
  #formats: TextFormats | undefined;
  #busySince: number | undefined;
  #runs = new WeakSet<Run>();
  readonly #chooser: SessionChooser;
  readonly #undo: UndoCommands;
  readonly #person: PersonCommands;

  /** `clock` is used only by the delays of the chart. */
  constructor(made: CodingAgent, terminal: TerminalMaker, clock?: SimulatedClock) {
    this.#made = made;
    this.#prompt = createActor(promptMachine, clock ? { clock } : {});
    this.finished = new Promise((leave) => {
      this.#prompt.on('*', (act) => {
        if (act.type === 'leave') leave(act.code);
        else this.#perform(act).catch((error: unknown) => this.#say('red', thrownText(error)));
      });
    });
    this.#prompt.subscribe(() => this.#terminal?.changed());
    this.#prompt.start();
    this.#terminal = terminal(this);
    const port = { made: () => this.#made, say: this.#say.bind(this), terminal: this.#terminal };
    this.#person = new PersonCommands(port);
    this.#chooser = new SessionChooser({ ...port, currentId: () => this.id });
    this.#undo = new UndoCommands({ ...port, note: (text) => this.#person.note(text) });
    this.#questions = new CallQuestions({
      ...port,
      send: (event) => this.#prompt.send(event),
      formats: () => this.#loadFormats(),
      changeShown: (callId, patch) => this.#opened?.renderer.changeShown(callId, patch),
    });
  }

  get id(): string | undefined {
    return this.#opened?.conversation.id;
  }

  /** Closes the agent in use. */
  closeAgent(): Promise<void> {
    return this.#made.close();
  }

  get isEmpty(): boolean {
    return (this.#opened?.conversation.log().length ?? 0) <= 1;
  }

  /**
   * Opens a session, or a new one, in place of the open one. If that fails it rejects, and the old one stays open.
   * `isShown`: its last request is on the screen.
   */
  open(id: string | undefined, isShown = false): Promise<void> {
    const opened = this.#open(id, isShown).finally(() => {
      this.#opening = undefined;
    });
    this.#opening = opened.catch(() => undefined);
    return opened;
  }

  async #open(id: string | undefined, isShown: boolean): Promise<void> {
    const conversation = await this.#made.agent.open(id ?? newSessionId());
    try {
      mustWorkIn(conversation, this.#made.cwd);
    } catch (error) {
      await conversation.close();
      throw error;
    }
    this.#opened?.release();
    await this.#opened?.conversation.close();
    this.#terminal.commit([openedLine(this.#made.about, conversation.id)]);
    if (conversation.log().length > 1) await this.#loadFormats();
    this.#follow(conversation, isShown);
    const gone = goneCommands(conversation.log());
    this.#terminal.commit([...openedPlanLines(conversation.log()), ...(isShown ? [] : gone.map(goneLine))]);
    for (const command of gone) this.#person.note(goneNote(command));
  }

  close(): void {
    this.#opened?.release();
    this.#prompt.stop();
    this.#terminal.close();
  }

  /** Handles Ctrl-C that arrived as a signal. */
  readonly signalled = (): void => {
    // In an editor, Ctrl-C is for the editor.
    if (this.#terminal.isHandedOver !== true) this.interrupt(this.#terminal.text);
  };

  reportEquipment(): void {
    tellEquipment(this.#made.equipment, (note) => this.#say('yellow', note));
  }

  /** Lists the sessions of this directory. The next line may choose one by its number. */
  choose(): Promise<void> {
    return this.#chooser.list();
  }

  view(): TerminalView {
    const snapshot = this.#prompt.getSnapshot();
    const { background } = this.#made;
    const lines = footLines({ snapshot, opened: this.#opened, background, busySince: this.#busySince }, Date.now());
    if (!this.#questions.isAsking) lines.push(...this.#menus.lines(this.#terminal.text));
    return { lines, question: questionSpan(snapshot), isAwaiting: isAwaiting(snapshot) };
  }

  settle(width: number, keep?: number): TextLine[] {
    return this.#opened?.renderer.settle(width, keep) ?? [];
  }

  isTurning(): boolean {
    const { work } = this.#prompt.getSnapshot().value;
    return work === 'busy' || this.#opened?.renderer.isShowing === true;
  }

  history(): readonly string[] {
    return this.#history;
  }

  submit(text: string, later: boolean): void {
    const isAnswer = this.#questions.isAsking;
    const command = isAnswer ? undefined : (this.#chooser.take(text) ?? this.#undo.take(text));
    if (command !== undefined) return this.#prompt.send({ type: 'SUBMIT', text: command, later: false });
    if (!isAnswer && text.trim() !== '' && text !== this.#history.at(-1)) this.#history.push(text);
    this.#prompt.send({ type: 'SUBMIT', text, later });
  }

  escape(): void {
    this.#prompt.send({ type: 'ESCAPE' });
  }

  interrupt(text: string): void {
    if (this.#person.endCommand()) return;
    this.#prompt.send({ type: 'INTERRUPT', text });
  }

  end(): void {
    this.#prompt.send({ type: 'END' });
  }

  completed(text: string): string {
    return this.#menus.completed(text);
  }

  moveInMenu(text: string, step: number): boolean {
    return !this.#questions.isAsking && this.#menus.move(text, step);
  }

  /** The parsers are loaded after the first draw, so that the program starts without them. */
  async #loadFormats(): Promise<TextFormats> {
    this.#formats ??= (await import('../formatted/textFormats.ts')).default;
    return this.#formats;
  }

  #say(style: Style, text: string): void {
    this.#terminal.commit([ownLine([style, text])]);
  }

  #follow(conversation: Conversation, isShown: boolean): void {
    const renderer = rendererFor(this.#terminal, () => this.#formats);
    const entries = conversation.log();
    this.#terminal.commit(openedLines(renderer, entries, isShown));
    for (const entry of isShown ? [] : entries)
      if (entry.type === 'user-message') this.#history.push(typedText(entry.content));
    this.#queued = new AbortController();
    this.#questions.reset();
    const log = conversation.log$(entries.length).subscribe((entry) => {
      this.#terminal.commit(renderer.entry(entry));
      this.#scheduleUpdate();
    });
    const live = conversation.live$.subscribe((signal) => {
      this.#terminal.commit(renderer.signal(signal));
      this.#terminal.changed();
      if (signal.type === 'status') this.#scheduleUpdate();
    });
    const unwatch = showEnds(this.#made.background, this.#terminal);
    const release = (): void => {
      unwatch?.();
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
    this.#questions.update(conversation);
    if (conversation.pending.length === 0 && conversation.status === 'waiting') this.#watch(conversation.resume());
    const isBusy = conversation.status !== 'idle' && conversation.status !== 'error';
    if (isBusy) this.#busySince ??= Date.now();
    else this.#busySince = undefined;
    this.#prompt.send({ type: isBusy ? 'BEGAN' : 'ENDED' });
    this.#terminal.changed();
  }

  /** Prints the error of a failed run. A decision that arrived while the run ended has continued it as another run. */
  #watch(run: Run): void {
    if (this.#runs.has(run)) return;
    this.#runs.add(run);
    void run.result.then(async ({ error, subtype }) => {
      if (error) this.#say('red', `error (${error.code}): ${error.message}`);
      const conversation = this.#opened?.conversation;
      if (subtype === 'suspended' && conversation?.status === 'active') this.#watch(conversation.resume());
      this.#updatePrompt();
      await this.#summarizeAfter(error).catch((thrown: unknown) => this.#say('red', thrownText(thrown)));
    });
  }

  /** Continues a request that was too long for the model with a summary in place of earlier messages. */
  async #summarizeAfter(error: RunResult['error'], conversation = this.#opened?.conversation): Promise<void> {
    const window = conversation && windowAfter(error, this.#made.model, conversation.log());
    if (!conversation || window === undefined) return;
    this.#say('yellow', summaryNote(window));
    if (!(await this.#remake(conversation, { contextWindow: String(window) }))) return;
    this.#made.compactNext('');
    await this.#perform({ type: 'send', text: CONTINUED });
  }

  async #perform(act: Exclude<PromptAct, { type: 'leave' }>): Promise<void> {
    while (this.#opening) await this.#opening;
    if (!this.#opened && this.#unopened !== undefined) await this.open(this.#unopened, true);
    const isMessage = act.type === 'send' || act.type === 'steer' || act.type === 'later';
    // Another terminal than a drawn one shows the text as it is.
    if (isMessage && Number.isFinite(this.#terminal.rows)) await this.#loadFormats();
    const conversation = this.#opened?.conversation;
    if (!conversation) return;
    const { signal } = this.#queued;
    switch (act.type) {
      case 'send':
        return this.#watch(conversation.send(await this.#person.content(act.text), { signal }));
      case 'steer':
        return this.#watch(conversation.send(await this.#person.content(act.text), { signal, kind: 'steer' }));
      case 'later':
        return this.#watch(conversation.send(await this.#person.content(act.text), { signal, kind: 'followUp' }));
      case 'command':
        if (act.text.startsWith('!')) return this.#person.run(act.text.slice(1).trim(), conversation.cwd);
        return performCommand(act.text, conversation, this.#commandPort(conversation));
      case 'cancel':
        return this.#cancel(conversation);
      case 'clear':
        return this.#terminal.fill('');
      case 'fill':
        return this.#terminal.fill(act.text);
      case 'hint':
        return this.#say('dim', `· ${act.text}`);
      case 'decide':
        await this.#questions.decide(act.call, act.decision, conversation);
        return this.#updatePrompt();
      case 'edit':
        return this.#questions.edit(act.call, conversation);
      case 'view':
        return this.#questions.view(act.call, conversation);
    }
  }

  /** Puts the queued messages back into the line. */
  async #cancel(conversation: Conversation): Promise<void> {
    const waiting = this.#person.withdrawn(conversation.queue.map(({ content }) => content));
    const cancelled = conversation.cancel();
    if (waiting.length > 0) this.#queued.abort();
    this.#queued = new AbortController();
    await cancelled;
    this.#updatePrompt();
    if (waiting.length > 0)
      this.#terminal.fill([...waiting, this.#terminal.text].filter((text) => text !== '').join('\n'));
  }

  #commandPort(conversation: Conversation): CommandPort {
    return {
      made: this.#made,
      terminal: this.#terminal,
      remembered: this.#questions.remembered,
      forget: (rule) => this.#questions.forget(rule),
      say: (style, text) => this.#say(style, text),
      watch: (run) => this.#watch(run),
      formats: () => this.#loadFormats(),
      list: () => this.#chooser.list(),
      undo: (name, argument) => this.#undo[name](argument, conversation),
      swap: (choice) => this.#swap(conversation, choice),
      isBusy: () => this.#isBusy(conversation),
      remake: (changes, restartsServers) => this.#remake(conversation, changes, restartsServers),
      reopen: (work) => this.#reopen(conversation, work),
      send: (text) => this.#perform({ type: conversation.status === 'active' ? 'steer' : 'send', text }),
    };
  }

  /** Files must be read again with the new agent before they are changed. False if a request is under way. */
  async #remake(conversation: Conversation, changes: AgentChanges, restartsServers?: boolean): Promise<boolean> {
    if (this.#isBusy(conversation)) return false;
    const permissionMode = this.#made.permissions.modeOf(conversation.id);
    const allow = [...(changes.allow ?? []), ...this.#questions.remembered];
    const made = await this.#made.remade({ permissionMode, ...changes, allow }, restartsServers);
    await this.#reopen(conversation, async () => {
      await this.#made.close();
      this.#made = made;
      return conversation.id;
    });
    // A message that arrived meanwhile keeps the agent that works on it.
    if (this.#made !== made) await made.close();
    else if (restartsServers) this.reportEquipment();
    return this.#made === made;
  }

  /** Closes the session for the work, then opens the one that it resolves to; the same one if it rejects. Acts wait. */
  #reopen(conversation: Conversation, work: () => Promise<string>): Promise<void> {
    if (this.#isBusy(conversation)) return Promise.resolve();
    this.#terminal.commit(endingLines(this.#made.background, conversation.id));
    this.#opened?.release();
    this.#opened = undefined;
    this.#unopened = conversation.id;
    const next = conversation
      .close()
      .then(work)
      .catch((error: unknown) => {
        this.#say('red', thrownText(error));
        return conversation.id;
      });
    const opened = next.then((id) => this.open(id, id === conversation.id));
    this.#opening = opened.catch(() => undefined);
    return opened;
  }

  #isBusy({ status }: Conversation): boolean {
    const isBusy = status === 'active' || status === 'cancelling';
    if (isBusy) this.#say('yellow', 'a request is under way: Escape stops it');
    return isBusy;
  }

  async #swap(conversation: Conversation, choice: string | undefined): Promise<void> {
    if (this.#isBusy(conversation)) return;
    const id = choice === undefined ? undefined : await this.#chooser.find(choice);
    if (choice !== undefined && id === undefined) return;
    if (id === conversation.id) return this.#say('plain', 'this is that session');
    await this.open(id);
  }
}
