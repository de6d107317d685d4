/** The requests of the chats: messages, the history, a running reply and its stop. */
import { chatHandler } from '../../../../chatHandler';

export const GET = (request: Request): Promise<Response> => chatHandler(request);
export const POST = (request: Request): Promise<Response> => chatHandler(request);
