import { type RefObject, useCallback, useEffect, useRef } from 'react';

/** Browsers round scroll positions. */
const AT_END_PX = 2;

/** Keeps the end of a box in view as its only child grows, while the reader is at the end. `follow` goes there. */
export function useFollowEnd(): readonly [box: RefObject<HTMLDivElement | null>, follow: () => void] {
  const box = useRef<HTMLDivElement>(null);
  const following = useRef({ isOn: true, top: 0 });
  const keepUp = useCallback(() => {
    const { current: element } = box;
    if (element === null || !following.current.isOn) return;
    element.scrollTop = element.scrollHeight;
    following.current.top = element.scrollTop;
  }, []);
  useEffect(() => {
    const element = box.current!;
    const onScroll = (): void => {
      const { scrollTop: top, scrollHeight, clientHeight } = element;
      // What arrived since the last scroll is no reason to stop: only the reader scrolls up.
      if (scrollHeight - top - clientHeight < AT_END_PX) following.current.isOn = true;
      else if (top < following.current.top) following.current.isOn = false;
      following.current.top = top;
    };
    const observer = new ResizeObserver(keepUp);
    observer.observe(element);
    observer.observe(element.firstElementChild!);
    element.addEventListener('scroll', onScroll, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener('scroll', onScroll);
    };
  }, [keepUp]);
  const follow = useCallback(() => {
    following.current.isOn = true;
    keepUp();
  }, [keepUp]);
  return [box, follow];
}
