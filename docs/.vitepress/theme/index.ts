// VitePress takes the theme from this file's default export. Our styles come last, so that they win.
import DefaultTheme from 'vitepress/theme';
import './site.css';

export default DefaultTheme;
