#!/usr/bin/env python3
"""make_video.py - makes tests/data/video by ffmpeg. Its files are committed: no other version makes the same bytes."""
import os, subprocess

os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "video"))
subprocess.run(["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", "testsrc2=s=96x64:r=25", "-frames:v", "12", "-c:v", "libx264",
                "-pix_fmt", "yuv420p", "-crf", "30", "-bf", "2", "-bitexact", "-movflags", "+faststart", "clip.mp4"], check=True)
