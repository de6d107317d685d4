/** The types of packages that the examples use and that are not installed here, and of styles, which the build of Next accepts. */
declare module 'next/navigation' {
  export function redirect(address: string): never;
}
declare module 'next/headers' {
  export function headers(): Promise<Headers>;
}
declare module '*.css';
declare module '@ai-sdk/otel' {
  export class OpenTelemetry {}
}
declare module 'resumable-stream' {
  interface ResumableStreamContext {
    createNewResumableStream(
      id: string,
      makeStream: () => ReadableStream<string>,
    ): Promise<ReadableStream<string> | null>;
    resumeExistingStream(id: string): Promise<ReadableStream<string> | null | undefined>;
  }
  export function createResumableStreamContext(options: {
    waitUntil: ((promise: Promise<unknown>) => void) | null;
  }): ResumableStreamContext;
}
