/** Begins the page. */
import { render } from 'preact';
import './style.css';

const place = document.getElementById('page');
if (place) render(<p>runchart inspector</p>, place);
