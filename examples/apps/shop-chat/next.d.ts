// The part of Next that the app uses, so that its types can be checked without installing Next.
declare module 'next/headers' {
  export function cookies(): Promise<{
    get(name: string): { value: string } | undefined;
    set(
      name: string,
      value: string,
      options?: { httpOnly?: boolean; sameSite?: 'lax' | 'strict'; secure?: boolean; maxAge?: number },
    ): void;
    delete(name: string): void;
  }>;
  export function headers(): Promise<Headers>;
}

declare module 'next/navigation' {
  export function redirect(url: string): never;
}

declare module '*.css';
