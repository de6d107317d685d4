/** Pages of AG-UI and of the AI SDK, with the protocols' own clients, and a handler on a loopback server. */
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { HttpAgent } from '@ag-ui/client';
import { createAdaptorServer } from '@hono/node-server';
import {
  AbstractChat,
  type ChatState,
  type ChatStatus,
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type UIMessage,
} from 'ai';
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

export class ChatPage extends AbstractChat<UIMessage> {
  constructor(api: string) {
    super({
      id: 'c',
      state: new PageState(),
      transport: new DefaultChatTransport<UIMessage>({ api }),
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    });
  }

  /** Ids of the approvals that the page requests from its user, in order. */
  get asked(): { approvalId: string; toolCallId: string; toolName: string; input: unknown }[] {
    return this.messages.flatMap(({ parts }) =>
      parts.flatMap((part) =>
        part.type === 'dynamic-tool' && part.state === 'approval-requested'
          ? [{ approvalId: part.approval.id, toolCallId: part.toolCallId, toolName: part.toolName, input: part.input }]
          : [],
      ),
    );
  }

  /** Parts of the last message as words. */
  get last(): string[] {
    return (this.messages.at(-1)?.parts ?? []).flatMap((part) => {
      if (part.type === 'text') return [part.text];
      return part.type === 'dynamic-tool' ? [`${part.toolCallId} ${part.state}`] : [];
    });
  }
}
