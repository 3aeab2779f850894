import { randomUUID } from 'node:crypto';
import { db } from '@/lib/db';
import { findUser } from '@/lib/login';
import { readBounded } from '@/lib/read-bounded';

const MAX_BYTES = 5 * 1024 * 1024;
const MAX_FILES = 100;

export async function POST(request: Request): Promise<Response> {
  const user = findUser(request);
  if (user === undefined) return new Response('Log in first', { status: 401 });
  const type = request.headers.get('content-type') ?? '';
  if (!/^image\/(png|jpeg|webp)$/.test(type)) return new Response('Send a picture', { status: 415 });
  const bytes = await readBounded(request.body, MAX_BYTES);
  if (bytes === undefined) return new Response('A picture may have 5 MB', { status: 413 });
  const id = randomUUID();
  const { changes } = db
    .prepare('INSERT INTO files SELECT ?, ?, ?, ? WHERE (SELECT count(*) FROM files WHERE owner = ?) < ?')
    .run(id, user, type, bytes, user, MAX_FILES);
  if (changes === 0) return new Response('You have sent too many pictures', { status: 429 });
  return Response.json({ path: `/api/files/${id}` });
}
