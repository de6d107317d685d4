/**
 * Commands that continue after the call that started them. Rule: a command belongs to one conversation, and ends with it
 * or with the program. Its output since the last reading is kept, bounded as that of any command.
 */
import { randomBytes } from 'node:crypto';
import { thrownMessage } from '../../../errors.ts';
import { awaitAll } from '../../../timeLimit.ts';
import { onConversationEnd, type Tool, type ToolContext } from '../../tool.ts';
import type { Launcher } from '../sandbox.ts';
import { Output, runInto, type ShellEnd, withoutHalfAtEnd } from '../shell.ts';
import { SpilledOutput } from '../spilledOutput.ts';

/** Commands of one conversation that run at the same time. */
export const RUNNING_MAX = 16;
/** Ended commands whose end is remembered. */
const ENDED_MAX = 64;

export interface BackgroundStart {
  command: string;
  cwd: string;
  /** Infinity for no limit. */
  timeoutMs: number;
  launcher: Launcher | undefined;
}

/** `stopped`: ended by KillBash, or with the conversation. */
export type BackgroundEnd = ShellEnd | { kind: 'stopped' };

export class BackgroundCommand {
  readonly id: string;
  readonly command: string;
  readonly timeoutMs: number;
  readonly since: number = performance.now();
  /** Resolves when all its processes have ended. */
  readonly ended: Promise<BackgroundEnd>;
  /** Undefined while it runs. */
  end: BackgroundEnd | undefined;
  readonly #stop = new AbortController();
  #unread = new Output(new SpilledOutput());
  /** The beginning of a character whose rest has not come. It belongs to the next reading. */
  #half = Buffer.alloc(0);

  constructor(id: string, { command, cwd, timeoutMs, launcher }: BackgroundStart) {
    this.id = id;
    this.command = command;
    this.timeoutMs = timeoutMs;
    const sink = {
      push: (chunk: Buffer): void => this.#push(chunk),
      bytes: 0,
      lastLine: (): string => '',
      end: (): void => {
        this.#unread.push(this.#half);
        // The file of a long output is closed, also if nobody reads it.
        this.#unread.end();
      },
    };
    const options = { cwd, timeoutMs, launcher, signal: this.#stop.signal, isBackground: true };
    this.ended = runInto(sink, command, { ...options, progress: () => undefined })
      .catch((error: unknown): BackgroundEnd => {
        return this.#stop.signal.aborted ? { kind: 'stopped' } : { kind: 'not_started', why: thrownMessage(error) };
      })
      .then(async (end) => {
        await launcher?.release().catch(() => undefined);
        this.end = end;
        return end;
      });
  }

  #push(chunk: Buffer): void {
    const bytes = Buffer.concat([this.#half, chunk]);
    const whole = withoutHalfAtEnd(bytes);
    this.#half = bytes.subarray(whole.length);
    this.#unread.push(whole);
  }

  get isRunning(): boolean {
    return this.end === undefined;
  }

  /** Returns its output since the last call. */
  read(): Output {
    const output = this.#unread;
    this.#unread = new Output(new SpilledOutput());
    output.end();
    return output;
  }

  /** Resolves when all its processes have ended. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.ended;
  }
}

export class BackgroundCommands {
  /** By conversation and id; the oldest first. */
  readonly #commands = new Map<string, Map<string, BackgroundCommand>>();
  readonly #listeners = new Set<(command: BackgroundCommand) => void>();

  /** Undefined if too many commands run or the call is cancelled. In that case the caller must release the launcher. */
  start(context: ToolContext, start: BackgroundStart): BackgroundCommand | undefined {
    const { conversationId, signal } = context;
    const commands = this.#commands.get(conversationId) ?? new Map<string, BackgroundCommand>();
    if (signal.aborted || this.running(conversationId).length >= RUNNING_MAX) return undefined;
    if (!this.#commands.has(conversationId)) {
      this.#commands.set(conversationId, commands);
      onConversationEnd(context, () => this.#stopAll(conversationId));
    }
    const command = new BackgroundCommand(`bash_${randomBytes(4).toString('hex')}`, start);
    commands.set(command.id, command);
    for (const { id } of [...commands.values()].filter(({ isRunning }) => !isRunning).slice(0, -ENDED_MAX))
      commands.delete(id);
    this.#tell(command);
    void command.ended.then(() => this.#tell(command));
    return command;
  }

  find(conversationId: string, id: string): BackgroundCommand | undefined {
    return this.#commands.get(conversationId)?.get(id);
  }

  running(conversationId: string): BackgroundCommand[] {
    return [...(this.#commands.get(conversationId)?.values() ?? [])].filter(({ isRunning }) => isRunning);
  }

  /** Calls `listener` when a command starts and when it has ended. Returns a function that ends this. */
  watch(listener: (command: BackgroundCommand) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #tell(command: BackgroundCommand): void {
    for (const listener of this.#listeners) listener(command);
  }

  async #stopAll(conversationId: string): Promise<void> {
    const commands = [...(this.#commands.get(conversationId)?.values() ?? [])];
    this.#commands.delete(conversationId);
    await awaitAll(commands.map((command) => command.stop()));
  }
}

const registries = new WeakMap<Tool, BackgroundCommands>();

/** Marks the tool that starts these commands. */
export function startingCommands(tool: Tool, commands: BackgroundCommands): Tool {
  registries.set(tool, commands);
  return tool;
}

/** The commands that one of the tools starts in the background. */
export const backgroundCommandsOf = (tools: readonly Tool[]): BackgroundCommands | undefined =>
  tools.map((tool) => registries.get(tool)).find((commands) => commands !== undefined);
