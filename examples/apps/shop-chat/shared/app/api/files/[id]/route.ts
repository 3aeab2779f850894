import { db } from '@/lib/db';

/** Without a login, because the model's provider fetches it: anyone who knows its id may read it. */
export async function GET(_: Request, { params }: { params: Promise<{ id: string }> }): Promise<Response> {
  const file = db.prepare('SELECT type, bytes FROM files WHERE id = ?').get((await params).id);
  if (file === undefined) return new Response('No such file', { status: 404 });
  const headers = { 'content-type': String(file['type']), 'x-content-type-options': 'nosniff' };
  return new Response(file['bytes'] as Uint8Array<ArrayBuffer>, { headers });
}
