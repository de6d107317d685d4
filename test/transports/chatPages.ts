/** Pages of AG-UI and of the AI SDK, with the protocols' own clients, and a handler on a loopback server. */
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { HttpAgent } from '@ag-ui/client';
import { createAdaptorServer } from '@hono/node-server';
import * as ai6 from 'ai';
import { type ChatState, type ChatStatus, getToolName, isToolUIPart, type UIMessage } from 'ai';
import * as ai7 from 'ai-v7';
import { onTestFinished } from 'vitest';

export type Handler = (request: Request) => Promise<Response>;

/** The address of a server with this handler. `requests` counts its requests. */
export async function served(handler: Handler): Promise<{ url: string; requests(): number }> {
  let count = 0;
  const fetch = (request: Request): Promise<Response> => {
    count += 1;
    return handler(request);
  };
  const server = createAdaptorServer({ fetch, overrideGlobalObjects: false }) as Server;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, requests: () => count };
}

export const agUiPage = (url: string): HttpAgent => new HttpAgent({ url, threadId: 'c' });

/** The state of `useChat`, in memory. */
class PageState implements ChatState<UIMessage> {
  status: ChatStatus = 'ready';
  error: Error | undefined;
  messages: UIMessage[] = [];
  pushMessage = (message: UIMessage): void => {
    this.messages = [...this.messages, message];
  };
  popMessage = (): void => {
    this.messages = this.messages.slice(0, -1);
  };
  replaceMessage = (index: number, message: UIMessage): void => {
    this.messages = this.messages.map((each, at) => (at === index ? structuredClone(message) : each));
  };
  snapshot = <T>(value: T): T => structuredClone(value);
}

type Library = Pick<
  typeof ai6,
  'AbstractChat' | 'DefaultChatTransport' | 'lastAssistantMessageIsCompleteWithApprovalResponses'
>;

/** The class under `useChat`, of one version of the AI SDK. */
function pageOf({ AbstractChat, DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses }: Library) {
  return class ChatPage extends AbstractChat<UIMessage> {
    /** `sendsLast`: the page sends its last message alone, as `message`. */
    constructor(api: string, messages: UIMessage[] = [], sendsLast = false) {
      const prepareSendMessagesRequest = ({ id, messages: all }: { id: string; messages: UIMessage[] }) => ({
        body: { id, message: all.at(-1) },
      });
      const state = new PageState();
      state.messages = messages;
      super({
        id: 'c',
        state,
        transport: new DefaultChatTransport<UIMessage>({
          api: api.replace(/\/$/, ''),
          ...(sendsLast && { prepareSendMessagesRequest }),
        }),
        sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
      });
    }

    /** The page after a reload: it reads its history, and continues a running reply. */
    static async reloaded(api: string): Promise<ChatPage> {
      const page = new this(api, (await (await fetch(`${api.replace(/\/$/, '')}/c`)).json()) as UIMessage[]);
      await page.resumeStream();
      return page;
    }

    /** Ids of the approvals that the page requests from its user, in order. */
    get asked(): { approvalId: string; toolCallId: string; toolName: string; input: unknown }[] {
      return this.messages.flatMap(({ parts }) =>
        parts.flatMap((part) =>
          isToolUIPart(part) && part.state === 'approval-requested'
            ? [
                {
                  approvalId: part.approval.id,
                  toolCallId: part.toolCallId,
                  toolName: getToolName(part),
                  input: part.input,
                },
              ]
            : [],
        ),
      );
    }

    /** Parts of the last message as words. */
    get last(): string[] {
      return (this.messages.at(-1)?.parts ?? []).flatMap((part) => {
        if (part.type === 'text') return [part.text];
        return isToolUIPart(part) ? [`${part.toolCallId} ${part.state}`] : [];
      });
    }
  };
}

export const ChatPage = pageOf(ai6);
export type ChatPage = InstanceType<typeof ChatPage>;
/** Version 7 has the same names, and types of its own. */
export const ChatPage7 = pageOf(ai7 as unknown as Library);
export const PAGES = [
  ['AI SDK 6', ChatPage],
  ['AI SDK 7', ChatPage7],
] as const;
