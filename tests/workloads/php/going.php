<?php
/* Included by stops.php: goes on along the path of who includes it. */

Work\go($path);
