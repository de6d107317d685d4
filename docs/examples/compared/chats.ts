/** What `reload-ai-sdk.ts` and `stop-ai-sdk.ts` need of a database, which the AI SDK leaves to its user. Not counted. */
import type { UIMessage } from 'ai';

export interface Chat {
  messages: UIMessage[];
  activeStreamId: string | null;
}

export declare function readChat(id: string): Promise<Chat>;
export declare function saveChat(id: string, changes: Partial<Chat>): Promise<void>;
