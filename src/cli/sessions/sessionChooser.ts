/**
 * Lists the other sessions of a directory for a person to choose from. Invariant: a number refers to the last list, and only the next
 * line may consist of a number alone. A session with that name takes precedence.
 */
import type { ConversationInfo } from '../../stores/logStore.ts';
import type { CodingAgent } from '../codingAgent.ts';
import type { ConversationTerminal } from '../interactive/conversationTerminal.ts';
import { ownLine, type TextLine } from '../interactive/textRows.ts';
import type { Style } from '../screen.ts';
import { checkSession } from './sessionStore.ts';
import { sessionFacts } from './sessionsCommand.ts';

const LISTED = 10;

export interface ChooserPort {
  made(): CodingAgent;
  /** The open session, which is not listed. */
  currentId(): string | undefined;
  say(style: Style, text: string): void;
  readonly terminal: Pick<ConversationTerminal, 'commit'>;
}

export class SessionChooser {
  readonly #port: ChooserPort;
  #listed: readonly ConversationInfo[] = [];
  /** The rows of the last list. */
  #rows: readonly ConversationInfo[] | undefined;

  constructor(port: ChooserPort) {
    this.#port = port;
  }

  /** Lists the latest sessions, or those whose title or id contains the query. */
  async list(query = ''): Promise<void> {
    const { say, terminal } = this.#port;
    const sessions = (await this.#sessions()).filter((session) => fits(session, query));
    if (sessions.length === 0) return say('plain', 'there is no other session of this directory');
    this.#listed = this.#rows = sessions.slice(0, LISTED);
    const now = Date.now();
    terminal.commit(this.#listed.map((session, index) => listedLine(index + 1, session, now)));
    const more = sessions.length - this.#listed.length;
    say('dim', `a number opens one of them, /resume and a word searches${more > 0 ? ` · ${more} more` : ''}`);
  }

  /** Returns the command that opens the session which a line chooses after a list. */
  take(line: string): string | undefined {
    const chosen = /^\s*\d{1,2}\s*$/.test(line) ? this.#listed[Number(line) - 1]?.id : undefined;
    this.#listed = [];
    return chosen === undefined ? undefined : `/resume ${chosen}`;
  }

  /** Resolves to the session of an id, or of a row. Lists the sessions that match a word instead. Rejects if there is none. */
  async find(choice: string): Promise<string | undefined> {
    const place = this.#port.made().sessions;
    if (choice === this.#port.currentId() || (await place.has(choice).catch(() => false))) return choice;
    const sessions = await this.#sessions();
    const row = /^\d{1,2}$/.test(choice) ? (this.#rows ?? sessions)[Number(choice) - 1] : undefined;
    if (row) return row.id;
    if (sessions.some((session) => fits(session, choice))) {
      await this.list(choice);
      return undefined;
    }
    await checkSession(place, choice);
    return choice;
  }

  async #sessions(): Promise<ConversationInfo[]> {
    const { agent, cwd } = this.#port.made();
    return (await agent.list()).filter((each) => each.cwd === cwd && each.id !== this.#port.currentId());
  }
}

/** One session: its number, age and title, then its state, turns and cost. */
function listedLine(number: number, session: ConversationInfo, now: number): TextLine {
  const { age, title, turns, cost, state } = sessionFacts(session, now);
  const facts = [state, turns, cost].filter((fact) => fact !== 'idle').join(' · ');
  return {
    ...ownLine(
      ['cyan', String(number).padStart(2)],
      ['dim', `${age.padStart(7)}  `],
      ['plain', title === '' ? session.id : title],
      ['dim', `  ${facts}`],
    ),
    margin: ' '.repeat(11),
  };
}

const fits = ({ id, title = '' }: ConversationInfo, query: string): boolean =>
  `${id} ${title}`.toLowerCase().includes(query.toLowerCase());
